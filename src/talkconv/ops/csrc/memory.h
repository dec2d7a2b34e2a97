// Fresh output memory. From about a million elements on, most of a call's time would go into the
// first touch of its output: one trap into the system for every page of 4 KiB.
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(__SSE__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#if !defined(MADV_POPULATE_WRITE)
#define MADV_POPULATE_WRITE 23  // Linux 5.14; older systems refuse it, and nothing is lost
#endif
#endif

namespace talkconv {

// Has the system map the pages of [data, data + bytes) at once; what they hold stays as it is. Huge
// pages would save more where the machine is alone, but a virtual machine that hands free memory back
// to its host waits many times longer for one than for small pages.
inline void map_pages(void* data, size_t bytes) {
#if defined(__linux__)
  static const uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data) & ~(page - 1);
  const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes + page - 1) & ~(page - 1);
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_POPULATE_WRITE);
#else
  (void)data, (void)bytes;
#endif
}

// Makes rows that were streamed around the caches visible to other threads.
inline void finish_streaming() {
#if defined(__SSE__) || defined(_M_X64)
  _mm_sfence();
#endif
}

}  // namespace talkconv

// Output memory. From about a million elements on, most of a call's time would go into the first touch
// of fresh memory: one trap into the system for every page of 4 KiB.
#pragma once

#include <atomic>
#include <chrono>
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

// Whether huge pages are worth asking for. Where they are at hand they cost a third of small ones. A
// virtual machine that hands free memory back to its host waits ten times longer for them instead, and
// then they are not asked for in the next 16 calls, after the second time 32, at most 1024.
class HugePageLuck {
 public:
  bool try_now() {
    if (calls_to_skip_ <= 0) return true;
    --calls_to_skip_;
    return false;
  }
  void was_good() { next_skip_ = least_skip; }
  void was_bad() {
    const int skip = next_skip_;
    calls_to_skip_ = skip;
    next_skip_ = skip < most_skip ? 2 * skip : most_skip;
  }

 private:
  static constexpr int least_skip = 16, most_skip = 1024;
  // threads may disagree for a moment; nothing but time depends on it
  std::atomic<int> calls_to_skip_{0}, next_skip_{least_skip};
};

// The output of one call, mapped piece by piece just before it is written. What it holds stays as it is.
class FreshMemory {
 public:
  FreshMemory(void* data, size_t bytes) : begin_(static_cast<char*>(data)), bytes_(bytes) {
    huge_ = bytes >= huge_from_bytes && luck().try_now();
#if defined(__linux__)
    if (huge_) advise(begin_, bytes_, MADV_HUGEPAGE);
#endif
  }
  ~FreshMemory() {
    if (huge_) luck().was_good();
  }

  void map(void* data, size_t bytes) {
#if defined(__linux__)
    using clock = std::chrono::steady_clock;
    const auto start = clock::now();
    advise(data, bytes, MADV_POPULATE_WRITE);
    const std::chrono::duration<double> seconds = clock::now() - start;
    const int pieces = ++pieces_;
    if (!huge_ || seconds.count() * slow_bytes_per_second < double(bytes)) return;
    // one piece now and then is slow everywhere
    if (++slow_pieces_ > 2 + pieces / 4 && huge_.exchange(false)) {
      luck().was_bad();
      advise(begin_, bytes_, MADV_NOHUGEPAGE);
    }
#else
    (void)data, (void)bytes, (void)begin_, (void)bytes_;
#endif
  }

 private:
  // Below this the allocator may cut outputs from memory that it keeps, where the advice would stay.
  static constexpr size_t huge_from_bytes = size_t{32} << 20;
  // Clearing memory is faster than this; who is slower waits for something else.
  static constexpr double slow_bytes_per_second = 2e9;

  static HugePageLuck& luck() {
    static HugePageLuck luck;
    return luck;
  }

#if defined(__linux__)
  static void advise(void* data, size_t bytes, int advice) {
    static const uintptr_t page = uintptr_t(sysconf(_SC_PAGESIZE));
    const uintptr_t begin = reinterpret_cast<uintptr_t>(data) & ~(page - 1);
    const uintptr_t end = (reinterpret_cast<uintptr_t>(data) + bytes + page - 1) & ~(page - 1);
    madvise(reinterpret_cast<void*>(begin), end - begin, advice);
  }
#endif

  char* const begin_;
  const size_t bytes_;
  std::atomic<bool> huge_{false};
  std::atomic<int> pieces_{0}, slow_pieces_{0};
};

// Makes rows that were streamed around the caches visible to other threads.
inline void finish_streaming() {
#if defined(__SSE__) || defined(_M_X64)
  _mm_sfence();
#endif
}

}  // namespace talkconv

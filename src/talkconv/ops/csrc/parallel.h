// Threads by OpenMP, which then shares PyTorch's own pool, or by std::thread if the compiler has no OpenMP.
#pragma once

#if defined(_OPENMP)
#include <omp.h>
#else
#include <thread>
#include <vector>
#endif

namespace talkconv {

// Calls body(thread, count) on `count` threads at once; count is at most `wanted`.
template <class Body>
void parallel(int wanted, Body body) {
  if (wanted <= 1) {
    body(0, 1);
    return;
  }
#if defined(_OPENMP)
#pragma omp parallel num_threads(wanted)
  body(omp_get_thread_num(), omp_get_num_threads());
#else
  std::vector<std::thread> others;
  for (int thread = 1; thread < wanted; ++thread) others.emplace_back(body, thread, wanted);
  body(0, wanted);
  for (std::thread& other : others) other.join();
#endif
}

}  // namespace talkconv

// Which instruction sets the processor and the operating system can run.
#pragma once

#if defined(_MSC_VER)
#include <immintrin.h>
#include <intrin.h>
#endif

namespace talkconv {

#if defined(_MSC_VER) && defined(_M_X64)

inline bool cpuid_bit(int leaf, int reg, int bit) {
  int registers[4];
  __cpuidex(registers, leaf, 0);
  return (registers[reg] >> bit) & 1;
}

// Returns whether the system saves the wide registers on a task switch.
inline bool system_saves(unsigned long long state) {
  return cpuid_bit(1, 2, 27) && (_xgetbv(0) & state) == state;
}

inline bool processor_has_avx2() {
  return system_saves(0x6) && cpuid_bit(1, 2, 12) && cpuid_bit(7, 1, 5);
}

inline bool processor_has_avx512() {
  return system_saves(0xe6) && processor_has_avx2() && cpuid_bit(7, 1, 16) && cpuid_bit(7, 1, 17) &&
         cpuid_bit(7, 1, 30) && cpuid_bit(7, 1, 31);
}

#elif defined(__x86_64__)

inline bool processor_has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

inline bool processor_has_avx512() {
  return processor_has_avx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl");
}

#endif

}  // namespace talkconv

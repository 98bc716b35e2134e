/* AVX-VNNI, VNNI in vectors of 256 bits: Intel from Alder Lake, which has no
 * AVX-512, AMD from Zen 5. */
#include "kernels.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avxvnni,avx2,fma,f16c"))), apply_to = function)
#else
#pragma GCC target("avxvnni,avx2,fma,f16c")
#endif

#define NAME "avxvnni"
#define DEEP 4
#define OFFSET 128 /* as with AVX-512 */
#define ELEMENT 1

#include "kernels_256.h"

/* In assembly because GCC 12 copies and spills the sums around its builtins. */
#define load_deep(p) ((vi)_mm256_loadu_si256((const __m256i *)(p)))
#define dot_deep(s, w, b) __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(s) : "x"(w), "x"(b))
#define dot_pair(s, w, b) __asm__("%{vex%} vpdpwssd %2, %1, %0" : "+x"(s) : "x"(w), "x"(b))

#include "kernels_template.h"

#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC reset_options
#endif

const og_kernels *og_avxvnni(void) {
	unsigned a, b, c, d;
	__builtin_cpu_init();
	if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) return NULL;
	return __get_cpuid_count(7, 1, &a, &b, &c, &d) && a & 1 << 4 ? &kernels : NULL;
}
#else
const og_kernels *og_avxvnni(void) { return NULL; }
#endif

/* Code shared by the kernels with vectors of 256 bits. */
#define MAX _mm256_max_ps
#define VL 8
#define MR 6

static inline __attribute__((always_inline)) __m256 load_half(const uint16_t *p) {
	return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
static inline __attribute__((always_inline)) __m256 load_byte(const int8_t *p) {
	return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)p)));
}
static inline __attribute__((always_inline)) void store_half(uint16_t *p, __m256 v) {
	_mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/* The kernels, for vectors of LANES floats: kernels_x86.c includes this once for each
 * instruction set. Sums are of floats throughout. */

#define TILE (WIDE * LANES)
#define INLINE TARGET static inline __attribute__((always_inline))

/* NAME(tile) computes c (+)= a b for a few rows of a and TILE columns of b, which are
 * floats, or 16-bit ones where half is set. */
INLINE void NAME(tile)(const int rows, int depth, const float *a, size_t a_row, const void *b, size_t b_row, const bool half, float *c, size_t c_row,
		       bool add)
{
	VECTOR sum[ROWS][WIDE];
	_Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)
		_Pragma("GCC unroll 8") for (int w = 0; w < WIDE; w++) sum[r][w] = add ? LOAD(c + r * c_row + w * LANES) : ZERO();
	for (int i = 0; i < depth; i++) {
		VECTOR x[WIDE];
		_Pragma("GCC unroll 8") for (int w = 0; w < WIDE; w++)
			x[w] = half ? WIDEN((const uint16_t *)b + i * b_row + w * LANES) : LOAD((const float *)b + i * b_row + w * LANES);
		_Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) {
			VECTOR y = ALL(a[r * a_row + i]);
			_Pragma("GCC unroll 8") for (int w = 0; w < WIDE; w++) sum[r][w] = MULADD(y, x[w], sum[r][w]);
		}
	}
	_Pragma("GCC unroll 8") for (int r = 0; r < rows; r++)
		_Pragma("GCC unroll 8") for (int w = 0; w < WIDE; w++) STORE(c + r * c_row + w * LANES, sum[r][w]);
}

/* NAME(tiles) is NAME(tile) for a number of rows, at most ROWS, that is known at run time. */
#define CASE(n) \
	case n: NAME(tile)(n, depth, a, a_row, b, b_row, half, c, c_row, add); break;
INLINE void NAME(tiles)(int rows, int depth, const float *a, size_t a_row, const void *b, size_t b_row, const bool half, float *c, size_t c_row, bool add)
{
	switch (rows) {
		CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
	}
}
#undef CASE

TARGET static void NAME(floats)(int rows, int depth, const float *a, size_t a_row, const float *b, size_t b_row, float *c, size_t c_row, bool add)
{
	NAME(tiles)(rows, depth, a, a_row, b, b_row, false, c, c_row, add);
}

TARGET static void NAME(halves)(int rows, int depth, const float *a, size_t a_row, const uint16_t *b, size_t b_row, float *c, size_t c_row, bool add)
{
	NAME(tiles)(rows, depth, a, a_row, b, b_row, true, c, c_row, add);
}

/* NAME(soften) turns a row of n scores (there is room up to a multiple of LANES) into
 * weights, of which it adds up *total, and returns by how much what is summed up already
 * shrinks, because the greatest score so far, *top, has grown. */
TARGET static float NAME(soften)(float *s, int n, const uint16_t *mask, float *top, float *total)
{
	int whole = og_round_up(n, LANES);
	for (int i = n; i < whole; i++) s[i] = -INFINITY;
	if (mask)
		for (int i = 0; i < n; i++) s[i] += _cvtsh_ss(mask[i]);
	VECTOR most = ALL(*top);
	for (int i = 0; i < whole; i += LANES) most = MOST(LOAD(s + i), most); /* what is not a number is passed over */
	float lanes[LANES], greatest = -INFINITY;
	STORE(lanes, most);
	for (int i = 0; i < LANES; i++) greatest = lanes[i] > greatest ? lanes[i] : greatest;
	if (greatest == -INFINITY) { /* all masked */
		memset(s, 0, sizeof *s * (size_t)whole);
		return 1;
	}
	VECTOR sum = ZERO(), off = ALL(greatest);
	for (int i = 0; i < whole; i += LANES) {
		VECTOR e = NAME(power)(LOAD(s + i) - off);
		STORE(s + i, e);
		sum += e;
	}
	float shrink = *top == greatest ? 1 : expf(*top - greatest);
	*total = *total * shrink + SUM(sum), *top = greatest;
	return shrink;
}

/* NAME(scores) multiplies n keys by a few queries: s[r * OG_KEYS + i]. */
INLINE void NAME(scores_of)(const int rows, const float *q, int width, const char *k, size_t k_row, int n, float *s)
{
	for (int i = 0; i < n; i++, k += k_row) {
		VECTOR sum[ROWS];
		_Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) sum[r] = ZERO();
		for (int d = 0; d < width; d += LANES) {
			VECTOR x = WIDEN((const uint16_t *)k + d);
			_Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) sum[r] = MULADD(x, LOAD(q + r * width + d), sum[r]);
		}
		_Pragma("GCC unroll 8") for (int r = 0; r < rows; r++) s[r * OG_KEYS + i] = SUM(sum[r]);
	}
}

#define CASE(n) \
	case n: NAME(scores_of)(n, q, width, k, k_row, count, s); break;
TARGET static void NAME(scores)(int rows, const float *q, int width, const char *k, size_t k_row, int count, float *s)
{
	switch (rows) {
		CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
	}
}
#undef CASE

/* NAME(head) computes the attention of one head: some keys at a time for all queries,
 * with sums that shrink when a greater score comes (Milakov and Gimelshein 2018). */
TARGET static void NAME(head)(const og_tensor *op, int head, float *work)
{
	const og_tensor *q = op->src[0], *k = op->src[1], *v = op->src[2], *mask = op->src[3];
	const int width = (int)q->ne[0], padded = og_round_up(width, TILE), queries = (int)q->ne[1], keys = (int)k->ne[1];
	const bool few = queries <= OG_COLUMNS && width == padded;
	float scale;
	memcpy(&scale, op->op_params, sizeof scale);
	float *scaled = work, *sum = scaled + (size_t)queries * padded, *top = sum + (size_t)queries * padded, *total = top + queries;
	float *s = total + queries, *kt = s + ROWS * OG_KEYS, *vf = kt + (size_t)padded * OG_KEYS;
	memset(sum, 0, sizeof *sum * (size_t)queries * padded);
	if (padded != width) memset(vf, 0, sizeof *vf * (size_t)padded * OG_KEYS);
	for (int i = 0; i < queries; i++) {
		const float *from = (const float *)((const char *)q->data + (size_t)i * q->nb[1] + (size_t)head * q->nb[2]);
		for (int d = 0; d < width; d++) scaled[(size_t)i * padded + d] = from[d] * scale;
		top[i] = -INFINITY, total[i] = 0;
	}
	for (int first = 0; first < keys; first += OG_KEYS) {
		const int n = keys - first < OG_KEYS ? keys - first : OG_KEYS;
		const char *kp = (const char *)k->data + (size_t)first * k->nb[1] + (size_t)head * k->nb[2];
		const char *vp = (const char *)v->data + (size_t)first * v->nb[1] + (size_t)head * v->nb[2];
		for (int i = 0; i < n && !few; i++) {
			float row[LANES];
			for (int d = 0; d < width; d += LANES) {
				STORE(vf + (size_t)i * padded + d, WIDEN((const uint16_t *)(vp + (size_t)i * v->nb[1]) + d));
				STORE(row, WIDEN((const uint16_t *)(kp + (size_t)i * k->nb[1]) + d));
				for (int e = 0; e < LANES; e++) kt[(size_t)(d + e) * OG_KEYS + i] = row[e];
			}
		}
		for (int i = 0; i < queries; i += ROWS) {
			const int rows = queries - i < ROWS ? queries - i : ROWS;
			const float *from = scaled + (size_t)i * padded;
			float *to = sum + (size_t)i * padded;
			if (few) NAME(scores)(rows, from, width, kp, k->nb[1], n, s);
			for (int c = 0; c < n && !few; c += TILE)
				NAME(floats)(rows, width, from, padded, kt + c, OG_KEYS, s + c, OG_KEYS, false);
			for (int r = 0; r < rows; r++) {
				const uint16_t *hidden = mask ? (const uint16_t *)((const char *)mask->data + (size_t)(i + r) * mask->nb[1]) + first : NULL;
				float shrink = NAME(soften)(s + r * OG_KEYS, n, hidden, top + i + r, total + i + r);
				if (shrink != 1)
					for (int d = 0; d < padded; d += LANES) STORE(to + r * padded + d, LOAD(to + r * padded + d) * ALL(shrink));
			}
			for (int c = 0; c < padded; c += TILE) {
				if (few)
					NAME(halves)(rows, n, s, OG_KEYS, (const uint16_t *)vp + c, v->nb[1] / 2, to + c, padded, true);
				else
					NAME(floats)(rows, n, s, OG_KEYS, vf + c, padded, to + c, padded, true);
			}
		}
	}
	for (int i = 0; i < queries; i++) {
		float *to = (float *)((char *)op->data + (size_t)i * op->nb[2] + (size_t)head * op->nb[1]);
		const float by = total[i] > 0 ? 1 / total[i] : 0;
		for (int d = 0; d < width; d++) to[d] = sum[(size_t)i * padded + d] * by;
	}
}

static void NAME(attention)(const og_part *p)
{
	for (int h = p->index; h < p->op->src[0]->ne[2]; h += p->parts) NAME(head)(p->op, h, p->work);
}

/* NAME(rows_by) multiplies DEEP rows of 16-bit weights by some columns of x. */
INLINE void NAME(rows_by)(const int columns, const uint16_t *w, size_t w_row, const float *x, size_t x_row, int depth, float *y, size_t y_row)
{
	VECTOR sum[DEEP][ROWS];
	_Pragma("GCC unroll 8") for (int r = 0; r < DEEP; r++)
		_Pragma("GCC unroll 8") for (int c = 0; c < columns; c++) sum[r][c] = ZERO();
	for (int i = 0; i < depth; i += LANES) {
		VECTOR a[DEEP];
		_Pragma("GCC unroll 8") for (int r = 0; r < DEEP; r++) a[r] = WIDEN(w + r * w_row + i);
		_Pragma("GCC unroll 8") for (int c = 0; c < columns; c++) {
			VECTOR b = LOAD(x + c * x_row + i);
			_Pragma("GCC unroll 8") for (int r = 0; r < DEEP; r++) sum[r][c] = MULADD(a[r], b, sum[r][c]);
		}
	}
	_Pragma("GCC unroll 8") for (int r = 0; r < DEEP; r++)
		_Pragma("GCC unroll 8") for (int c = 0; c < columns; c++) y[c * y_row + r] = SUM(sum[r][c]);
}

#define CASE(n) \
	case n: NAME(rows_by)(n, w, w_row, x, x_row, depth, y, y_row); break;
TARGET static void NAME(rows)(int columns, const uint16_t *w, size_t w_row, const float *x, size_t x_row, int depth, float *y, size_t y_row)
{
	switch (columns) {
		CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6)
	}
}
#undef CASE

TARGET static void NAME(row)(const uint16_t *w, const float *x, size_t x_row, int columns, int depth, float *y, size_t y_row)
{
	for (int c = 0; c < columns; c++) {
		VECTOR sum = ZERO();
		for (int i = 0; i < depth; i += LANES) sum = MULADD(WIDEN(w + i), LOAD(x + c * x_row + i), sum);
		y[c * y_row] = SUM(sum);
	}
}

/* NAME(product) computes its share of a product's rows. */
static void NAME(product)(const og_part *p)
{
	const og_tensor *w = p->op->src[0], *x = p->op->src[1];
	const int depth = (int)w->ne[0], columns = (int)x->ne[1];
	const int64_t from = w->ne[1] * p->index / p->parts, to = w->ne[1] * (p->index + 1) / p->parts;
	const size_t w_row = w->nb[1] / 2, x_row = x->nb[1] / 4, y_row = p->op->nb[1] / 4;
	for (int64_t r = from; r < to; r += DEEP)
		for (int c = 0; c < columns; c += ROWS) {
			const int some = columns - c < ROWS ? columns - c : ROWS;
			const uint16_t *wp = (const uint16_t *)w->data + (size_t)r * w_row;
			const float *xp = (const float *)x->data + (size_t)c * x_row;
			float *yp = (float *)p->op->data + (size_t)c * y_row + r;
			if (to - r >= DEEP) {
				NAME(rows)(some, wp, w_row, xp, x_row, depth, yp, y_row);
				continue;
			}
			for (int64_t i = 0; i < to - r; i++) NAME(row)(wp + (size_t)i * w_row, xp, x_row, some, depth, yp + i, y_row);
		}
}

const og_kernels CAT(og_, SET) = {STRING(SET), TILE, NAME(attention), NAME(product)};

#undef TILE
#undef INLINE

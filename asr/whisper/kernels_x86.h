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
		if (half) /* rows far apart, which the processor does not foresee */
			_Pragma("GCC unroll 8") for (int w = 0; w < WIDE; w += 32 / LANES) __builtin_prefetch((const uint16_t *)b + (i + AHEAD) * b_row + w * LANES);
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

/* NAME(turned) widens LANES numbers of each of so many rows, LANES at most, and writes them
 * as columns: to[i * to_row + r], zeros where there are no more rows. */
INLINE void NAME(turned)(const char *from, size_t row, int rows, float *to, size_t to_row)
{
	VECTOR block[LANES];
	if (rows >= LANES) {
		_Pragma("GCC unroll 16") for (int r = 0; r < LANES; r++) block[r] = WIDEN((const uint16_t *)(from + (size_t)r * row));
	} else {
		for (int r = 0; r < LANES; r++) block[r] = r < rows ? WIDEN((const uint16_t *)(from + (size_t)r * row)) : ZERO();
	}
	NAME(turn)(block);
	_Pragma("GCC unroll 16") for (int i = 0; i < LANES; i++) STORE(to + i * to_row, block[i]);
}

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
		for (int i = 0; i < n && !few; i++)
			for (int d = 0; d < width; d += LANES) STORE(vf + (size_t)i * padded + d, WIDEN((const uint16_t *)(vp + (size_t)i * v->nb[1]) + d));
		for (int i = 0; i < n; i += LANES) {
			for (int r = AHEAD; r < AHEAD + LANES; r++)
				for (int d = 0; d < width; d += 32) __builtin_prefetch(kp + (size_t)(i + r) * k->nb[1] + d * 2);
			for (int d = 0; d < width; d += LANES) NAME(turned)(kp + (size_t)i * k->nb[1] + d * 2, k->nb[1], n - i, kt + (size_t)d * OG_KEYS + i, OG_KEYS);
		}
		for (int i = 0; i < queries; i += ROWS) {
			const int rows = queries - i < ROWS ? queries - i : ROWS;
			const float *from = scaled + (size_t)i * padded;
			float *to = sum + (size_t)i * padded;
			for (int c = 0; c < n; c += TILE) NAME(floats)(rows, width, from, padded, kt + c, OG_KEYS, s + c, OG_KEYS, false);
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

/* NAME(few) multiplies its share of the weights' rows by a few columns. */
static void NAME(few)(const og_part *p)
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

/* NAME(upright) widens up to TILE rows of 16-bit weights and puts them upright: panel[i *
 * TILE + r], zeros where there are no more rows. */
TARGET static void NAME(upright)(const uint16_t *w, size_t w_row, int rows, int depth, float *panel)
{
	for (int r = 0; r < TILE; r += LANES)
		for (int i = 0; i < depth; i += LANES) NAME(turned)((const char *)(w + (size_t)r * w_row + i), w_row * 2, rows - r, panel + (size_t)i * TILE + r, TILE);
}

/* NAME(many) computes its share of a product with many columns: some rows of the
 * weights at a time, upright, for all columns. */
TARGET static void NAME(many)(const og_part *p)
{
	const og_tensor *w = p->op->src[0], *x = p->op->src[1];
	const int depth = (int)w->ne[0], columns = (int)x->ne[1];
	const int64_t all = w->ne[1];
	const size_t w_row = w->nb[1] / 2, y_row = p->op->nb[1] / 4;
	float *panel = p->work, *end = panel + OG_DEPTH * TILE, *wide = end + ROWS * TILE;
	for (int64_t first = (int64_t)p->index * TILE; first < all; first += (int64_t)p->parts * TILE) {
		const int rows = all - first < TILE ? (int)(all - first) : TILE;
		for (int from = 0; from < depth; from += OG_DEPTH) {
			const int deep = depth - from < OG_DEPTH ? depth - from : OG_DEPTH;
			NAME(upright)((const uint16_t *)w->data + (size_t)first * w_row + from, w_row, rows, deep, panel);
			for (int c = 0; c < columns; c += ROWS) {
				const int some = columns - c < ROWS ? columns - c : ROWS;
				const char *xp = (const char *)x->data + (size_t)c * x->nb[1] + (size_t)from * x->nb[0];
				const float *floats = (const float *)xp;
				size_t x_row = x->nb[1] / 4;
				if (x->type == OG_F16) {
					for (int r = 0; r < some; r++)
						for (int i = 0; i < deep; i += LANES) STORE(wide + r * OG_DEPTH + i, WIDEN((const uint16_t *)(xp + (size_t)r * x->nb[1]) + i));
					floats = wide, x_row = OG_DEPTH;
				}
				float *to = (float *)p->op->data + (size_t)c * y_row + first;
				if (rows == TILE) {
					NAME(floats)(some, deep, floats, x_row, panel, TILE, to, y_row, from > 0);
					continue;
				}
				NAME(floats)(some, deep, floats, x_row, panel, TILE, end, TILE, false);
				for (int r = 0; r < some; r++)
					for (int i = 0; i < rows; i++) to[r * y_row + i] = (from ? to[r * y_row + i] : 0) + end[r * TILE + i];
			}
		}
	}
}

static void NAME(product)(const og_part *p)
{
	(p->op->src[1]->ne[1] <= OG_COLUMNS && p->op->src[1]->type == OG_F32 ? NAME(few) : NAME(many))(p);
}

const og_kernels CAT(og_, SET) = {STRING(SET), TILE, NAME(attention), NAME(product)};

#undef TILE
#undef INLINE

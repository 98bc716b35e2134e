//go:build !windows

/* A ggml plug-in of our own: attention, and products of 16-bit and of q8_0 weights. They
 * are most of a decode (docs/performance.md). It is registered while a state is made that
 * wants it. */
#define _GNU_SOURCE
#include "libwhisper.h"

#include "kernels.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { API_VERSION = 3, MOST_THREADS = 16 };
/* Floating-point operations that are worth a thread. */
static const double worth_a_thread = 4e6;

typedef struct ggml_graph ggml_graph;
typedef struct ggml_buffer_type ggml_buffer_type;

typedef struct reg reg;
typedef struct device device;
typedef struct backend backend;

struct reg { /* struct ggml_backend_reg */
	int api_version;
	const char *(*get_name)(reg *);
	size_t (*get_device_count)(reg *);
	device *(*get_device)(reg *, size_t);
	void *(*get_proc_address)(reg *, const char *);
	void *context;
};

struct device { /* struct ggml_backend_device */
	const char *(*get_name)(device *);
	const char *(*get_description)(device *);
	void (*get_memory)(device *, size_t *, size_t *);
	int (*get_type)(device *);
	void (*get_props)(device *, og_device_props *);
	backend *(*init_backend)(device *, const char *);
	ggml_buffer_type *(*get_buffer_type)(device *);
	void *get_host_buffer_type, *buffer_from_host_ptr;
	bool (*supports_op)(device *, const og_tensor *);
	bool (*supports_buft)(device *, ggml_buffer_type *);
	void *offload_op, *events[3];
	reg *of;
	void *context;
};

struct backend { /* struct ggml_backend */
	const uint8_t *guid;
	const char *(*get_name)(backend *);
	void (*free)(backend *);
	void *transfers[6];
	void *plans[4]; /* create, free, update, compute */
	int (*graph_compute)(backend *, ggml_graph *);
	void *others[3];
	device *of;
	struct crew *context;
};

/* crew is what one backend has: threads to share an operation, and their memory. */
struct crew {
	int threads;
	float *work[MOST_THREADS];
	size_t room[MOST_THREADS]; /* floats */
};

#define GGML(X)                                                     \
	X(ggml_buffer_type *, ggml_backend_cpu_buffer_type, (void)) \
	X(bool, ggml_backend_buft_is_host, (ggml_buffer_type *))    \
	X(backend *, ggml_backend_init_by_type, (int, const char *)) \
	X(void, ggml_backend_free, (backend *))                     \
	X(const char *, ggml_op_name, (int))                        \
	X(size_t, ggml_tensor_overhead, (void))                     \
	X(const char *, ggml_version, (void))                       \
	X(ggml_buffer_type *, ggml_backend_buffer_get_type, (void *)) \
	X(const char *, ggml_backend_buft_name, (ggml_buffer_type *)) \
	X(int, ggml_graph_n_nodes, (ggml_graph *))                  \
	X(og_tensor *, ggml_graph_node, (ggml_graph *, int))

#define DECLARE(result, name, arguments) static result(*p_##name) arguments;
GGML(DECLARE)

#ifdef __x86_64__
static const og_kernels *kernels = &og_avx2;
#else
static const og_kernels *kernels;
#endif
static bool opened;
static void (*quants)(const og_part *); /* computes products of q8_0 weights; NULL without */
static atomic_ulong computed[2]; /* products, attentions */

static const char *name_of_reg(reg *r) { return (void)r, "otograph"; }
static const char *name_of_device(device *d) { return (void)d, "otograph"; }
static const char *name_of_backend(backend *b) { return (void)b, "otograph"; }
static size_t one(reg *r) { return (void)r, 1; }
static void no_memory(device *d, size_t *free, size_t *total) { (void)d, *free = *total = 0; }
static int accelerator(device *d) { return (void)d, OG_ACCEL; }
static ggml_buffer_type *common_memory(device *d) { return (void)d, p_ggml_backend_cpu_buffer_type(); }

/* packs reports whether this is the memory of ggml's AMX code, which repacks quantized
 * weights and keeps 16-bit ones unchanged. */
static bool packs(ggml_buffer_type *t) { return !strcmp(p_ggml_backend_buft_name(t), "AMX"); }

static bool reads(device *d, ggml_buffer_type *t) { return (void)d, p_ggml_backend_buft_is_host(t) || packs(t); }

static void describe(device *d, og_device_props *p)
{
	(void)d;
	p->name = "otograph", p->description = kernels->name;
	p->memory_free = p->memory_total = 0, p->type = OG_ACCEL, p->device_id = NULL;
	memset(p->caps, 0, sizeof p->caps);
}

/* in_rows reports whether a tensor's rows have no gaps and end where a float can begin. */
static bool in_rows(const og_tensor *t, size_t size) { return t->nb[0] == size && t->nb[1] % 4 == 0 && t->ne[3] == 1; }

/* multiplies reports whether the kernels compute this product of plain matrices. */
static bool multiplies(const og_tensor *op)
{
	const og_tensor *a = op->src[0], *b = op->src[1];
	if (op->type != OG_F32 || !in_rows(op, 4) || !in_rows(b, b->type == OG_F16 ? 2 : 4) || a->ne[2] != 1 || b->ne[2] != 1 || a->ne[3] != 1 || a->ne[1] < 32)
		return false;
	if (a->type == OG_F16) return (b->type == OG_F32 || b->type == OG_F16) && in_rows(a, 2) && a->ne[0] % 16 == 0;
	return a->type == OG_Q8_0 && quants && b->type == OG_F32 && a->ne[0] % 64 == 0 && a->nb[1] == (size_t)a->ne[0] / 32 * 34 &&
	       (!a->buffer || !packs(p_ggml_backend_buffer_get_type(a->buffer)));
}

static bool computes(device *d, const og_tensor *op)
{
	(void)d;
	const og_tensor *a = op->src[0], *b = op->src[1], *c = op->src[2], *mask = op->src[3];
	if (op->op == OG_MUL_MAT) return multiplies(op);
	if (op->op != OG_FLASH_ATTN_EXT) return false;
	float bias, cap;
	memcpy(&bias, op->op_params + 1, sizeof bias), memcpy(&cap, op->op_params + 2, sizeof cap);
	return a->type == OG_F32 && b->type == OG_F16 && c->type == OG_F16 && op->type == OG_F32 && in_rows(a, 4) && in_rows(b, 2) && in_rows(c, 2) &&
	       in_rows(op, 4) && a->ne[0] % 16 == 0 && a->ne[0] == b->ne[0] && a->ne[0] == c->ne[0] && b->ne[1] == c->ne[1] && a->ne[2] == b->ne[2] &&
	       a->ne[2] == c->ne[2] && (!mask || (mask->type == OG_F16 && in_rows(mask, 2) && mask->ne[2] == 1)) && !op->src[4] && bias == 0 && cap == 0;
}

/* cost returns the floating-point operations. */
static double cost(const og_tensor *op)
{
	const og_tensor *a = op->src[0], *b = op->src[1];
	if (op->op == OG_MUL_MAT) return 2.0 * (double)a->ne[0] * (double)a->ne[1] * (double)b->ne[1];
	return 4.0 * (double)a->ne[0] * (double)a->ne[1] * (double)a->ne[2] * (double)b->ne[1];
}

/* work returns how many floats each thread of an operation needs. */
static size_t work(const og_tensor *op)
{
	if (op->op == OG_FLASH_ATTN_EXT) return og_attention_work(op, kernels->tile);
	return op->src[0]->type == OG_Q8_0 ? og_quants_work(op) : og_product_work(kernels->tile);
}

static void *compute_part(void *p)
{
	const og_part *part = p;
	if (part->op->op == OG_FLASH_ATTN_EXT)
		kernels->attention(part);
	else
		(part->op->src[0]->type == OG_Q8_0 ? quants : kernels->product)(part);
	return NULL;
}

/* compute computes one operation, by several threads where that is worth it. */
static bool compute(struct crew *crew, const og_tensor *op)
{
	int n = (int)(cost(op) / worth_a_thread);
	n = n < crew->threads ? n : crew->threads;
	n = n < 1 ? 1 : n;
	og_part parts[MOST_THREADS];
	pthread_t threads[MOST_THREADS];
	bool begun[MOST_THREADS] = {false};
	for (int i = 0; i < n; i++) {
		size_t need = work(op);
		if (crew->room[i] < need) {
			free(crew->work[i]);
			crew->work[i] = malloc(need * sizeof(float));
			crew->room[i] = crew->work[i] ? need : 0;
			if (!crew->work[i]) return false;
		}
		parts[i] = (og_part){op, i, n, crew->work[i]};
	}
	for (int i = 1; i < n; i++) begun[i] = pthread_create(&threads[i], NULL, compute_part, &parts[i]) == 0;
	compute_part(&parts[0]);
	for (int i = 1; i < n; i++) {
		if (begun[i])
			pthread_join(threads[i], NULL);
		else
			compute_part(&parts[i]);
	}
	atomic_fetch_add(&computed[op->op != OG_MUL_MAT], 1);
	return true;
}

static int compute_graph(backend *b, ggml_graph *g)
{
	int n = p_ggml_graph_n_nodes(g);
	for (int i = 0; i < n; i++) {
		const og_tensor *op = p_ggml_graph_node(g, i);
		if ((op->flags & OG_FLAG_COMPUTE) && (op->op == OG_MUL_MAT || op->op == OG_FLASH_ATTN_EXT) && !compute(b->context, op))
			return -2; /* no memory */
	}
	return 0;
}

static void free_backend(backend *b)
{
	for (int i = 0; i < MOST_THREADS; i++) free(b->context->work[i]);
	free(b->context);
	free(b);
}

static void set_threads(backend *b, int n)
{
	b->context->threads = n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : n;
}

static void *function(reg *r, const char *name)
{
	(void)r;
	return strcmp(name, "ggml_backend_set_n_threads") ? NULL : (void *)set_threads;
}

static reg our_reg;
static device our_device;
static device *our(reg *r, size_t i) { return (void)r, (void)i, &our_device; }

static backend *new_backend(device *d, const char *params)
{
	(void)params;
	static const uint8_t guid[16] = "otograph kernels";
	backend *b = calloc(1, sizeof *b);
	struct crew *c = calloc(1, sizeof *c);
	if (!b || !c) {
		free(b), free(c);
		return NULL;
	}
	c->threads = 1;
	b->guid = guid, b->get_name = name_of_backend, b->free = free_backend, b->graph_compute = compute_graph;
	b->of = d, b->context = c;
	return b;
}

static reg our_reg = {API_VERSION, name_of_reg, one, our, function, NULL};
static device our_device = {
	.get_name = name_of_device, .get_description = name_of_device, .get_memory = no_memory, .get_type = accelerator, .get_props = describe,
	.init_backend = new_backend, .get_buffer_type = common_memory, .supports_op = computes, .supports_buft = reads, .of = &our_reg,
};

/* fits reports whether ggml is of the version whose structures are declared here, and
 * lays them out so: the CPU code's own must have each function, and each gap, where we
 * look for it. */
static bool fits(void)
{
	enum { OBJECT = 32 }; /* what ggml keeps before a tensor */
	if (strncmp(p_ggml_version(), OG_GGML_VERSION, sizeof OG_GGML_VERSION - 1) || p_ggml_tensor_overhead() != OBJECT + sizeof(og_tensor) || strcmp(p_ggml_op_name(OG_MUL_MAT), "MUL_MAT") ||
	    strcmp(p_ggml_op_name(OG_FLASH_ATTN_EXT), "FLASH_ATTN_EXT"))
		return false;
	backend *b = p_ggml_backend_init_by_type(0, NULL);
	if (!b) return false;
	bool ok = b->get_name && b->free && b->plans[0] && b->plans[1] && !b->plans[2] && b->plans[3] && b->graph_compute;
	for (int i = 0; i < 6; i++) ok = ok && !b->transfers[i];
	for (int i = 0; i < 3; i++) ok = ok && !b->others[i];
	device *d = b->of;
	ok = ok && d && d->of && d->get_name && d->supports_op && d->supports_buft && !d->get_host_buffer_type && !d->offload_op && !d->events[0];
	ok = ok && d->of->api_version == API_VERSION && d->of->get_device(d->of, 0) == d && d->of->get_device_count(d->of) == 1;
	p_ggml_backend_free(b);
	return ok;
}

/* og_kernels_open prepares the plug-in for the best instruction set of this processor, or
 * for the one that is named, and returns its name; NULL where there is none, or "off" is
 * asked for. */
const char *og_kernels_open(void *ggml, const char *set)
{
	opened = false;
#ifdef __x86_64__
	__builtin_cpu_init();
	unsigned a, b, c, d; /* by its bit, since old compilers don't know the name of f16c */
	bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
	bool avx2 = f16c && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
	bool avx512 = avx2 && __builtin_cpu_supports("avx512f");
	if (!strcmp(set, "off") || !avx2 || (!avx512 && !strcmp(set, "avx512"))) return NULL;
	kernels = avx512 && strcmp(set, "avx2") ? &og_avx512 : &og_avx2;
	quants = kernels == &og_avx512 && og_has_quants() ? og_quants : NULL;
#define FROM_GGML(result, name, arguments) \
	if (!(*(void **)&p_##name = dlsym(ggml, #name))) return NULL;
	GGML(FROM_GGML)
	opened = fits();
#else
	(void)ggml, (void)set, (void)fits;
#endif
	return opened ? kernels->name : NULL;
}

/* og_kernels_computed counts the products and the attentions computed since the start. */
void og_kernels_computed(uint64_t counts[2])
{
	for (int i = 0; i < 2; i++) counts[i] = atomic_load(&computed[i]);
}

/* og_kernels_backend returns a backend that computes an operation, NULL where the kernels
 * do not. */
void *og_kernels_backend(const void *op) { return opened && computes(&our_device, op) ? new_backend(&our_device, NULL) : NULL; }

/* og_kernels_plugin returns the plug-in, NULL where it was not opened. */
void *og_kernels_plugin(void) { return opened ? &our_reg : NULL; }

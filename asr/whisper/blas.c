//go:build !windows

/* ggml's BLAS plug-in, which computes the encoder's products with OpenBLAS. It is
 * registered for as long as a state is made that wants it: a state takes the plug-ins
 * it finds then, and keeps them. */
#define _GNU_SOURCE
#include "libwhisper.h"

#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

typedef struct ggml_context ggml_context;
typedef struct ggml_tensor ggml_tensor;
typedef struct ggml_graph ggml_graph;   /* struct ggml_cgraph */
typedef struct ggml_backend ggml_backend;
typedef struct ggml_buffer ggml_buffer; /* struct ggml_backend_buffer */
typedef struct ggml_buffer_type ggml_buffer_type;
typedef struct ggml_reg ggml_reg;       /* struct ggml_backend_reg */
typedef struct ggml_device ggml_device;
typedef struct ggml_params {
	size_t mem_size;
	void *mem_buffer;
	bool no_alloc;
} ggml_params;
typedef struct ggml_tallocr {
	ggml_buffer *buffer;
	void *base;
	size_t alignment, offset;
} ggml_tallocr;

/* Every function used: result, name, arguments. */
#define GGML(X)                                                                             \
	X(ggml_backend *, ggml_backend_init_by_type, (int, const char *))                   \
	X(void, ggml_backend_free, (ggml_backend *))                                        \
	X(int, ggml_backend_graph_compute, (ggml_backend *, ggml_graph *))                  \
	X(ggml_buffer *, ggml_backend_alloc_ctx_tensors, (ggml_context *, ggml_backend *))  \
	X(void, ggml_backend_buffer_clear, (ggml_buffer *, uint8_t))                        \
	X(void, ggml_backend_buffer_free, (ggml_buffer *))                                  \
	X(ggml_device *, ggml_backend_get_device, (ggml_backend *))                         \
	X(ggml_reg *, ggml_backend_dev_backend_reg, (ggml_device *))                        \
	X(bool, ggml_backend_dev_supports_op, (ggml_device *, const ggml_tensor *))         \
	X(ggml_buffer *, ggml_backend_buft_alloc_buffer, (ggml_buffer_type *, size_t))      \
	X(size_t, ggml_backend_buft_get_alloc_size, (ggml_buffer_type *, const ggml_tensor *)) \
	X(size_t, ggml_backend_buft_get_alignment, (ggml_buffer_type *))                    \
	X(const char *, ggml_backend_buft_name, (ggml_buffer_type *))                       \
	X(ggml_tallocr, ggml_tallocr_new, (ggml_buffer *))                                  \
	X(int, ggml_tallocr_alloc, (ggml_tallocr *, ggml_tensor *))                         \
	X(void *, ggml_backend_reg_get_proc_address, (ggml_reg *, const char *))            \
	X(ggml_context *, ggml_init, (ggml_params))                                         \
	X(void, ggml_free, (ggml_context *))                                                \
	X(ggml_tensor *, ggml_new_tensor_2d, (ggml_context *, int, int64_t, int64_t))       \
	X(ggml_tensor *, ggml_mul_mat, (ggml_context *, ggml_tensor *, ggml_tensor *))      \
	X(ggml_graph *, ggml_new_graph, (ggml_context *))                                   \
	X(void, ggml_build_forward_expand, (ggml_graph *, ggml_tensor *))

#define DECLARE(result, name, arguments) static result(*p_##name) arguments;
GGML(DECLARE)

static void (*p_ggml_backend_register)(ggml_reg *), (*p_ggml_backend_unload)(ggml_reg *);

static char problem[4096];
static const char *kernel = "";
static ggml_reg *plugin;           /* NULL without one */
static ggml_backend *(*init)(void); /* one of the plug-in, whether it is registered or not */
static void (*product_threads)(int);

/* Whoever reads ggml's list of plug-ins holds the lock for reading. */
static pthread_rwlock_t plugins = PTHREAD_RWLOCK_INITIALIZER;

void og_read_plugins(void) { pthread_rwlock_rdlock(&plugins); }
void og_plugins_read(void) { pthread_rwlock_unlock(&plugins); }
void og_change_plugins(void) { pthread_rwlock_wrlock(&plugins); }
void og_plugins_changed(void) { pthread_rwlock_unlock(&plugins); }

/* og_plugins_open finds the functions that change the list. */
bool og_plugins_open(void *ggml)
{
	p_ggml_backend_register = (void (*)(ggml_reg *))dlsym(ggml, "ggml_backend_register");
	p_ggml_backend_unload = (void (*)(ggml_reg *))dlsym(ggml, "ggml_backend_unload");
	return p_ggml_backend_register && p_ggml_backend_unload;
}

/* The plug-in and what it needs are never unmapped: its states live as long as they like. */
static void *keep(const char *dir, const char *name)
{
	char path[4096];
	snprintf(path, sizeof path, "%s/blas/%s", dir, name);
	void *h = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (!h) snprintf(problem, sizeof problem, "%s", dlerror());
	return h;
}

/* og_blas_open loads the plug-in in dir/blas. NULL when all is well, else what is wrong.
 * It comes after og_open, once. */
const char *og_blas_open(const char *dir, void *ggml)
{
#define FROM_GGML(result, name, arguments)                                               \
	if (!(*(void **)&p_##name = dlsym(ggml, #name))) {                               \
		snprintf(problem, sizeof problem, "ggml lacks the function %s", #name);  \
		return problem;                                                          \
	}
	GGML(FROM_GGML)
	/* OpenBLAS is linked with the Fortran library for functions that nobody calls here */
	if (!dlopen("libgfortran.so.5", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) && !keep(dir, "libgfortran.so.5")) return problem;
	void *openblas = keep(dir, "libopenblas.so.0");
	void *blas = openblas ? keep(dir, "libblas.so.3") : NULL;
	void *ggml_blas = blas ? keep(dir, "libggml-blas.so") : NULL;
	if (!ggml_blas) return problem;
	const char *(*core)(void) = (const char *(*)(void))dlsym(openblas, "openblas_get_corename");
	product_threads = (void (*)(int))dlsym(blas, "og_blas_threads");
	init = (ggml_backend * (*)(void)) dlsym(ggml_blas, "ggml_backend_blas_init");
	ggml_reg *(*reg)(void) = (ggml_reg * (*)(void)) dlsym(ggml_blas, "ggml_backend_init");
	if (!core || !product_threads || !init || !reg) return "it is not the plug-in that was expected";
	kernel = core();
	plugin = reg();
	return plugin ? NULL : "the plug-in does not start";
}

const char *og_blas_kernel(void) { return kernel; }

/* og_new_state makes a state that computes the encoder's products with OpenBLAS, and what
 * kernels.c has with that, if it is asked to. */
og_state *og_new_state(og_context *c, bool blas, bool kernels)
{
	ggml_reg *wanted[2] = {blas ? plugin : NULL, kernels ? og_kernels_plugin() : NULL}; /* the first that computes a product does */
	if (!wanted[0] && !wanted[1]) {
		og_read_plugins();
		og_state *s = og_init_state(c);
		og_plugins_read();
		return s;
	}
	pthread_rwlock_wrlock(&plugins);
	for (int i = 0; i < 2; i++)
		if (wanted[i]) p_ggml_backend_register(wanted[i]);
	og_state *s = og_init_state(c);
	for (int i = 0; i < 2; i++)
		if (wanted[i]) p_ggml_backend_unload(wanted[i]);
	pthread_rwlock_unlock(&plugins);
	return s;
}

/* og_blas_threads is how many threads share a product that the calling thread begins. */
void og_blas_threads(int n)
{
	if (product_threads) product_threads(n);
}

static double processor_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* set_threads sets a backend's number of threads. */
static bool set_threads(ggml_backend *b, ggml_reg *reg, int n)
{
	void (*set)(ggml_backend *, int) = (void (*)(ggml_backend *, int))p_ggml_backend_reg_get_proc_address(reg, "ggml_backend_set_n_threads");
	if (set) set(b, n);
	return set != NULL;
}

/* A product as the encoder has them: weights of WIDTH by WIDTH numbers, COLUMNS positions. */
enum { WIDTH = 512, COLUMNS = 512, ROUNDS = 4, FLOAT = 0, CPU = 0 };

/* packed_as returns the name of the layout of its own in which the CPU code keeps weights
 * of this type (AMX has one), NULL without. No plug-in reads those. */
static const char *packed_as(int type, ggml_device *cpu)
{
	ggml_buffer_type **(*extra)(ggml_device *) = (ggml_buffer_type **(*)(ggml_device *))p_ggml_backend_reg_get_proc_address(
		p_ggml_backend_dev_backend_reg(cpu), "ggml_backend_dev_get_extra_bufts");
	for (ggml_buffer_type **e = extra ? extra(cpu) : NULL; e && *e; e++) {
		ggml_context *g = p_ggml_init((ggml_params){1 << 20, NULL, true});
		if (!g) return NULL;
		ggml_tensor *weights = p_ggml_new_tensor_2d(g, type, WIDTH, WIDTH);
		ggml_tensor *product = p_ggml_mul_mat(g, weights, p_ggml_new_tensor_2d(g, FLOAT, WIDTH, COLUMNS));
		size_t size = p_ggml_backend_buft_get_alloc_size(*e, weights) + p_ggml_backend_buft_get_alignment(*e);
		ggml_buffer *buffer = p_ggml_backend_buft_alloc_buffer(*e, size);
		bool takes = false;
		if (buffer) {
			ggml_tallocr place = p_ggml_tallocr_new(buffer);
			takes = p_ggml_tallocr_alloc(&place, weights) == 0 && p_ggml_backend_dev_supports_op(cpu, product);
			p_ggml_backend_buffer_free(buffer);
		}
		p_ggml_free(g);
		if (takes) return p_ggml_backend_buft_name(*e);
	}
	return NULL;
}

/* og_blas_race measures a product with weights of this type: the least processor time in
 * seconds of the code that computes it without the plug-in, ggml's for the CPU or our own,
 * and of the plug-in, on one thread. Where the CPU code keeps such
 * weights in a layout of its own, packed is its name, and nothing is measured. False when
 * the product could not be computed. */
bool og_blas_race(int type, double seconds[2], const char **packed)
{
	bool ok = false;
	ggml_buffer *buffer = NULL;
	ggml_backend *cpu = NULL, *with[2] = {NULL, NULL}, *own = NULL;
	og_read_plugins();
	ggml_context *g = p_ggml_init((ggml_params){1 << 20, NULL, true});
	cpu = p_ggml_backend_init_by_type(CPU, NULL);
	og_plugins_read();
	with[1] = plugin ? init() : NULL;
	if (!g || !cpu || !with[1]) goto done;
	ggml_device *device = p_ggml_backend_get_device(cpu);
	if ((ok = (*packed = packed_as(type, device)) != NULL)) goto done;
	if (!set_threads(cpu, p_ggml_backend_dev_backend_reg(device), 1) || !set_threads(with[1], plugin, 1)) goto done;
	ggml_tensor *weights = p_ggml_new_tensor_2d(g, type, WIDTH, WIDTH);
	ggml_graph *graph = p_ggml_new_graph(g);
	ggml_tensor *product = p_ggml_mul_mat(g, weights, p_ggml_new_tensor_2d(g, FLOAT, WIDTH, COLUMNS));
	p_ggml_build_forward_expand(graph, product);
	if (!(buffer = p_ggml_backend_alloc_ctx_tensors(g, cpu))) goto done;
	with[0] = (own = og_kernels_backend(product)) ? own : cpu;
	p_ggml_backend_buffer_clear(buffer, 0);
	og_blas_threads(1);
	for (int round = 0; round < ROUNDS; round++) /* in turn: the machine's speed may change */
		for (int i = 0; i < 2; i++) {
			double start = processor_seconds();
			if (p_ggml_backend_graph_compute(with[i], graph)) goto done;
			double took = processor_seconds() - start;
			if (round == 0 || took < seconds[i]) seconds[i] = took;
		}
	ok = true;
done:
	if (buffer) p_ggml_backend_buffer_free(buffer);
	if (own) p_ggml_backend_free(own);
	if (cpu) p_ggml_backend_free(cpu);
	if (with[1]) p_ggml_backend_free(with[1]);
	if (g) p_ggml_free(g);
	return ok;
}

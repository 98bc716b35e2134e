//go:build !windows

/* Devices other than the CPU: the devices that ggml's plug-ins offer, and a
 * guard around calls that use one. Drivers report failure by a C++ exception or
 * a failed assertion, and either would end the program. */
#define _GNU_SOURCE
#include "device.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct ggml_device ggml_device;
typedef struct ggml_reg ggml_reg; /* struct ggml_backend_reg */

/* Every function used: result, name, arguments. */
#define GGML(X)                                                            \
	X(ggml_reg *, ggml_backend_load, (const char *))                   \
	X(size_t, ggml_backend_dev_count, (void))                          \
	X(ggml_device *, ggml_backend_dev_get, (size_t))                   \
	X(int, ggml_backend_dev_type, (ggml_device *))                     \
	X(const char *, ggml_backend_dev_description, (ggml_device *))     \
	X(void, ggml_backend_dev_memory, (ggml_device *, size_t *, size_t *)) \
	X(ggml_reg *, ggml_backend_dev_backend_reg, (ggml_device *))       \
	X(const char *, ggml_backend_reg_name, (ggml_reg *))               \
	X(void *, ggml_set_abort_callback, (void (*)(const char *)))

#define DECLARE(result, name, arguments) static result(*p_##name) arguments;
GGML(DECLARE)

enum { GPU = 1, INTEGRATED = 2 }; /* ggml_backend_dev_type */

static pthread_rwlock_t plugins = PTHREAD_RWLOCK_INITIALIZER; /* ggml's list of them */

void og_read_plugins(void) { pthread_rwlock_rdlock(&plugins); }
void og_plugins_read(void) { pthread_rwlock_unlock(&plugins); }

_Thread_local jmp_buf *og_guard;
static void (*terminate_before)(void);

extern void ogNativeLog(int level, char *text); /* native.go */

static void give_up(const char *why)
{
	char line[512];
	snprintf(line, sizeof line, "%s\n", why);
	ogNativeLog(4, line);
	longjmp(*og_guard, 1);
}

/* Handles a failed assertion of ggml. Without a guard, the program ends, as by
 * default. */
static void on_abort(const char *message)
{
	if (og_guard) give_up(message);
	fprintf(stderr, "%s\n", message);
}

/* Handles an uncaught C++ exception. */
static void on_terminate(void)
{
	if (og_guard) give_up("its driver threw an exception");
	if (terminate_before) terminate_before();
	abort();
}

/* og_devices_open makes devices known. It is called once, after og_open.
 * Returns NULL on success, else the error. */
const char *og_devices_open(void *ggml)
{
	static char problem[256];
#define FROM_GGML(result, name, arguments)                                              \
	if (!(*(void **)&p_##name = dlsym(ggml, #name))) {                              \
		snprintf(problem, sizeof problem, "ggml lacks the function %s", #name); \
		return problem;                                                         \
	}
	GGML(FROM_GGML)
	return NULL;
}

/* og_set_guard makes guarded calls return when native code fails fatally. It is
 * called once, before a device is used: without a device, a fatal failure of
 * CPU code still ends the program. Returns false if the guard cannot be
 * installed. */
bool og_set_guard(void)
{
	void *(*set_terminate)(void (*)(void)) = (void *(*)(void (*)(void)))dlsym(RTLD_DEFAULT, "_ZSt13set_terminatePFvvE");
	if (!set_terminate) return false;
	*(void **)&terminate_before = set_terminate(on_terminate);
	p_ggml_set_abort_callback(on_abort);
	return true;
}

/* og_load_plugin registers a plug-in's devices. Returns false if it does not
 * load or has no devices. */
bool og_load_plugin(const char *path)
{
	ggml_reg *volatile loaded = NULL;
	pthread_rwlock_wrlock(&plugins);
	GUARDED(loaded, NULL, p_ggml_backend_load(path));
	pthread_rwlock_unlock(&plugins);
	return loaded != NULL;
}

/* og_devices fills in up to the given number of devices, in libwhisper's order,
 * and returns their number. */
int og_devices(og_device *out, int most)
{
	int n = 0;
	og_read_plugins();
	for (size_t i = 0; i < p_ggml_backend_dev_count() && n < most; i++) {
		ggml_device *d = p_ggml_backend_dev_get(i);
		int type = p_ggml_backend_dev_type(d);
		if (type != GPU && type != INTEGRATED) continue;
		out[n] = (og_device){p_ggml_backend_reg_name(p_ggml_backend_dev_backend_reg(d)), p_ggml_backend_dev_description(d), 0, 0, type == INTEGRATED};
		UNDER_GUARD(p_ggml_backend_dev_memory(d, &out[n].free, &out[n].total));
		n++;
	}
	og_plugins_read();
	return n;
}

/* Devices other than the CPU, and the guard around native calls that use one.
 * */
#ifndef OTOGRAPH_DEVICE_H
#define OTOGRAPH_DEVICE_H

#include <setjmp.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct og_device {
	const char *backend, *description;
	size_t free, total;
	bool integrated; /* it has no memory of its own */
} og_device;

const char *og_devices_open(void *ggml);
bool og_set_guard(void);
bool og_load_plugin(const char *path);
int og_devices(og_device *out, int most);

/* Callers that read ggml's list of plug-ins call these before and after. */
void og_read_plugins(void);
void og_plugins_read(void);

/* The result of a decode whose device failed; libwhisper's own codes are
 * smaller numbers. */
enum { OG_GAVE_UP = -1000 };

/* GUARDED sets result to the value of call, or to failure if native code fails
 * fatally in it. The locks that the call held are then never released, so its
 * context and states must be neither used again nor freed. */
#define GUARDED(result, failure, call)      \
	do {                                \
		jmp_buf og_here;            \
		og_guard = &og_here;        \
		if (_setjmp(og_here))       \
			result = (failure); \
		else                        \
			result = (call);    \
		og_guard = NULL;            \
	} while (0)

/* UNDER_GUARD is the same for calls that return nothing. */
#define UNDER_GUARD(call)                      \
	do {                                   \
		volatile int og_done;          \
		GUARDED(og_done, 0, (call, 1)); \
		(void)og_done;                 \
	} while (0)

extern _Thread_local jmp_buf *og_guard;

#endif

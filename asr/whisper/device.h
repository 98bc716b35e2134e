/* Devices beside the processor, and the guard around native calls that use one. */
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

/* Whoever reads ggml's list of plug-ins calls these before and after. */
void og_read_plugins(void);
void og_plugins_read(void);

/* What a decode returns when the device gave up; libwhisper's own codes are small. */
enum { OG_GAVE_UP = -1000 };

/* GUARDED sets result to what call returns, or to failure if native code gives up in it.
 * Whatever the call held is lost then: its locks are never released, so that its context
 * and states must not be used again, nor freed. */
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

package ort

/*
#include <stdlib.h>

// Microsoft's builds of ONNX Runtime write a device number and a database of
// events below the home folder and send them to Microsoft, unless this variable
// is set when they create their environment. A value set by the user is kept.
// The variable is set before the program has a second thread, because the
// environment must not be written while a library reads it.
__attribute__((constructor)) static void og_stay_offline(void)
{
#ifdef _WIN32
	if (!getenv("ORT_DISABLE_TELEMETRY")) _putenv_s("ORT_DISABLE_TELEMETRY", "1");
#else
	setenv("ORT_DISABLE_TELEMETRY", "1", 0);
#endif
}
*/
import "C"

/* compute_threads.c - the one place that knows OpenMP exists.
 *
 * oneDNN's C API has no call for the number of threads; its OpenMP runtime has, and is in the
 * process because oneDNN brought it.  It is looked up by name, so that we are not linked with a
 * runtime of our own choice.  A oneDNN built without OpenMP decides for itself. */
#include "compute_threads.h"

#include <dlfcn.h>
#include <sched.h>

unsigned compute_threads_default(void)
{
    int (*most)(void) = (int (*)(void))dlsym(RTLD_DEFAULT, "omp_get_max_threads");
    cpu_set_t set;
    if (most)
        return (unsigned)most();
    return sched_getaffinity(0, sizeof set, &set) ? 1 : (unsigned)CPU_COUNT(&set);
}

void compute_threads_set(unsigned n)
{
    void (*set)(int) = (void (*)(int))dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set)
        set((int)n);
}

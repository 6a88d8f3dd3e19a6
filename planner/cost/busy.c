/* SPDX-License-Identifier: Apache-2.0
 *
 * How long threads ran and waited for processors: /proc/self/task/N/schedstat.
 */
#include "planner/cost/busy.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/text.h"
#include "io/file.h"
#include "planner/cost/progress.h"

#define SHARE 0.25 /* of a second, waited by all */
#define SPIN 0.06  /* s: longer than others keep a processor at a time */
enum { MOST_SPINNERS = 64 };

static void add_thread(struct busy_times *sum, const char *path)
{
    char text[128], *end;
    text[file_head(text, sizeof text - 1, path)] = '\0';
    sum->ran += (double)strtoull(text, &end, 10) * 1e-9; /* of ns */
    sum->waited += (double)strtoull(end, NULL, 10) * 1e-9;
}

struct busy_times busy_times(void)
{
    struct busy_times sum = {0};
    char path[320];
    const struct dirent *entry;
    DIR *d = opendir("/proc/self/task");
    while (d && (entry = readdir(d)))
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", entry->d_name);
            add_thread(&sum, path);
        }
    if (d)
        closedir(d);
    return sum;
}

double busy_share(struct busy_times from, struct busy_times to)
{
    const double ran = to.ran > from.ran ? to.ran - from.ran : 0;
    const double waited = to.waited > from.waited ? to.waited - from.waited : 0;
    return waited > 0 ? waited / (ran + waited) : 0;
}

/* One of those that try: what it waited is the result. */
struct spinner {
    pthread_t thread;
    bool begun;
    double waited;
};

static void *spin(void *of)
{
    struct spinner *s = of;
    struct busy_times before = {0}, after = {0};
    const double end = progress_now() + SPIN;
    add_thread(&before, "/proc/thread-self/schedstat");
    while (progress_now() < end)
        ;
    add_thread(&after, "/proc/thread-self/schedstat");
    s->waited = after.waited - before.waited;
    return NULL;
}

bool busy_now(int threads)
{
    struct spinner spinners[MOST_SPINNERS] = {{.begun = false}};
    const int n = threads < MOST_SPINNERS ? threads : MOST_SPINNERS;
    double waited = 0;
    for (int i = 0; i < n; i++)
        spinners[i].begun =
            pthread_create(&spinners[i].thread, NULL, spin, &spinners[i]) == 0;
    for (int i = 0; i < n; i++)
        if (spinners[i].begun && pthread_join(spinners[i].thread, NULL) == 0)
            waited += spinners[i].waited;
    return waited > SHARE * SPIN;
}

bool busy_since(struct busy_times from, double seconds)
{
    return busy_times().waited - from.waited > SHARE * seconds;
}

int busy_processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

double busy_load(void)
{
    char text[128], *end;
    text[file_head(text, sizeof text - 1, "/proc/loadavg")] = '\0';
    double load = text_to_real(text, &end);
    return end != text ? load : -1;
}

/* SPDX-License-Identifier: Apache-2.0
 *
 * How long threads ran and waited for processors: /proc/self/task/N/schedstat.
 */
#include "planner/cost/busy.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/text.h"
#include "io/file.h"

static void add_thread(struct busy_times *sum, const char *thread)
{
    char path[320], text[128], *end;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", thread);
    text[file_head(text, sizeof text - 1, path)] = '\0';
    sum->ran += (double)strtoull(text, &end, 10) * 1e-9; /* of ns */
    sum->waited += (double)strtoull(end, NULL, 10) * 1e-9;
}

struct busy_times busy_times(void)
{
    struct busy_times sum = {0};
    const struct dirent *entry;
    DIR *d = opendir("/proc/self/task");
    while (d && (entry = readdir(d)))
        if (entry->d_name[0] != '.')
            add_thread(&sum, entry->d_name);
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

/* SPDX-License-Identifier: Apache-2.0
 *
 * How long the process has waited for processors: the sign of a machine that is busy
 * with something else, under which no time means much.
 */
#include "planner/cost/cost.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>

#include "io/file.h"

/* schedstat: ns on a processor, ns waiting for one, slices. */
static double thread_waited(const char *thread)
{
    char path[300], text[128], *end;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", thread);
    text[file_head(text, sizeof text - 1, path)] = '\0';
    strtoull(text, &end, 10);
    return (double)strtoull(end, NULL, 10) * 1e-9;
}

double cost_waited(void)
{
    DIR *threads = opendir("/proc/self/task");
    const struct dirent *entry;
    double sum = 0;
    while (threads && (entry = readdir(threads)))
        if (entry->d_name[0] != '.')
            sum += thread_waited(entry->d_name);
    if (threads)
        closedir(threads);
    return sum;
}

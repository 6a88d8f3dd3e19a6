/* SPDX-License-Identifier: Apache-2.0
 *
 * The stand-in's metrics.
 */
#include "tests/serving/host_private.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { MOST_METRICS = 64 };

struct TRITONSERVER_Parameter {
    char text[128];
};
struct TRITONSERVER_MetricFamily {
    char name[64];
};
struct TRITONSERVER_Metric {
    const char *name;
    char labels[256];
    double value;
    bool open;
};

static struct TRITONSERVER_Metric metrics[MOST_METRICS];
static int n_metrics;
static bool no_metrics;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards values */

TRITONSERVER_Parameter *TRITONSERVER_ParameterNew(const char *name,
                                                  TRITONSERVER_ParameterType type,
                                                  const void *value)
{
    TRITONSERVER_Parameter *p = host_make(sizeof *p);
    cr_assert_eq(type, TRITONSERVER_PARAMETER_STRING);
    snprintf(p->text, sizeof p->text, "%s=%s", name, (const char *)value);
    return p;
}

void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter *p)
{
    host_drop(p);
}

TRITONSERVER_Error *TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily **out,
                                                 TRITONSERVER_MetricKind kind,
                                                 const char *name, const char *help)
{
    MAY_FAIL;
    cr_assert(kind == TRITONSERVER_METRIC_KIND_COUNTER && help);
    if (no_metrics)
        return TRITONSERVER_ErrorNew(TRITONSERVER_ERROR_UNSUPPORTED, "no metrics");
    *out = host_make(sizeof **out);
    snprintf((*out)->name, sizeof(*out)->name, "%s", name);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily *f)
{
    for (int i = 0; i < n_metrics; i++)
        cr_assert(!metrics[i].open, "a family ends before its metrics");
    host_drop(f);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricNew(TRITONSERVER_Metric **out,
                                           TRITONSERVER_MetricFamily *f,
                                           const TRITONSERVER_Parameter **labels,
                                           uint64_t n)
{
    MAY_FAIL;
    int at = 0;
    while (at < n_metrics && metrics[at].open)
        at++;
    cr_assert(at < MOST_METRICS);
    n_metrics += at == n_metrics;
    TRITONSERVER_Metric *m = *out = &metrics[at];
    *m = (TRITONSERVER_Metric){.name = f->name, .open = true};
    for (uint64_t i = 0; i < n; i++)
        snprintf(m->labels + strlen(m->labels), sizeof m->labels - strlen(m->labels),
                 "%s%s", i ? "," : "", labels[i]->text);
    host_count(1);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricDelete(TRITONSERVER_Metric *m)
{
    cr_assert(m->open);
    m->open = false;
    host_count(-1);
    return NULL;
}

TRITONSERVER_Error *TRITONSERVER_MetricIncrement(TRITONSERVER_Metric *m, double value)
{
    MAY_FAIL;
    cr_assert(m->open && value > 0);
    pthread_mutex_lock(&lock);
    m->value += value;
    pthread_mutex_unlock(&lock);
    return NULL;
}

double host_metric(const char *name, const char *labels)
{
    double value = -1;
    for (int i = 0; i < n_metrics; i++)
        if (metrics[i].open && !strcmp(metrics[i].name, name) &&
            strstr(metrics[i].labels, labels))
            value = metrics[i].value;
    return value;
}

void host_without_metrics(bool without)
{
    no_metrics = without;
}

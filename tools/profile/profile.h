/* SPDX-License-Identifier: Apache-2.0
 *
 * strata profile.
 *
 *   profile          the command
 *   profile_measure  whole runs, then runs watched step by step
 *   profile_table    a row a step, and what the sum says
 *   profile_trace    some runs as a trace for Perfetto or Chrome
 *   html             one HTML file: html_layers, html_memory, html_plan, html_text
 */
#ifndef TOOLS_PROFILE_PROFILE_H
#define TOOLS_PROFILE_PROFILE_H

#include "tools/explain/explain.h"
#include "tools/tool.h"

enum { PROFILE_RUNS = 50 }; /* unless told */

struct profile_row {
    strata_step step;
    double *us;               /* of each run */
    double median, low, high; /* us; a tenth of the runs lies below low, above high */
};

struct profile {
    const strata_engine *engine;
    strata_handle *handle;
    struct profile_row *rows; /* one a step, re-labels too */
    size_t n, runs, told;     /* told: runs that the rows hold */
    double whole_us;          /* median of unwatched runs, on the device */
    double stepped_us;        /* the same without a graph; whole_us where there is none */
    double sum_us;            /* of the rows' medians */
    double watched_us; /* median of the sums of runs: above sum_us where runs differ */
    bool graph;
};

/* `runs` of each kind on a context, after one of each. Free it in every case. */
int profile_measure(struct profile *p, strata_context *c, size_t runs, bool ranges,
                    strata_error *err);
void profile_free(struct profile *p);
/* File name of a row's module, or "". */
const char *profile_module(const struct profile_row *r);
/* Median time over the floor, as a share of the first; 0 where nothing is done. */
double profile_roofline(const struct profile_row *r);

struct profile_print {
    int format;
    bool by_time; /* slowest first, else in the order of the run */
    size_t top;   /* rows; 0: all */
};
void profile_print(const struct profile *p, const struct profile_print *how);
/* As trtexec writes it. */
int profile_write(const struct profile *p, const char *path, strata_error *err);

/* Some runs on every one of `streams` streams, copies included, at the options' sizes. */
int profile_trace(const strata_engine *e, const struct tool_options *o,
                  const char *device, size_t streams, size_t runs, const char *path,
                  strata_error *err);

/* ---- report -------------------------------------------------------------------------
 */

/* html_text.c: escaped. */
void html_text(const char *text, FILE *out);
/* The sections. */
void html_layers(const struct profile *p, FILE *out);
void html_roofline(const struct profile *p, FILE *out);
void html_memory(const struct profile *p, FILE *out);
void html_fusions(const struct profile *p, FILE *out);
void html_impls(const struct profile *p, FILE *out);
void html_reformats(const struct profile *p, const struct explain *x, FILE *out);
int html_graph(const struct profile *p, const struct explain *x, FILE *out,
               strata_error *err);
/* html.c */
int html_write(const struct profile *p, const char *path, strata_error *err);

#endif /* TOOLS_PROFILE_PROFILE_H */

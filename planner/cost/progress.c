/* SPDX-License-Identifier: Apache-2.0
 *
 * Progress lines and interruption.
 */
#include "planner/cost/progress.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/text.h"

#define TERMINAL_SECONDS 0.1
#define LOG_SECONDS 5.0

static atomic_bool enabled;
static atomic_bool interrupted; /* lock-free: set in a signal handler */
static _Thread_local struct {
    int (*fn)(void *user);
    void *user;
    bool ended; /* fn said so */
} asked;

double progress_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

void progress_enable(bool on)
{
    atomic_store(&enabled, on);
    atomic_store(&interrupted, false);
}

void progress_interrupt(void)
{
    atomic_store(&interrupted, true);
}

void progress_ask(int (*fn)(void *user), void *user)
{
    asked.fn = fn;
    asked.user = user;
    asked.ended = false;
}

void progress_ask_anew(void)
{
    asked.ended = false;
}

bool progress_was_ended(void)
{
    return asked.ended;
}

bool progress_interrupted(void)
{
    if (!asked.ended && asked.fn)
        asked.ended = asked.fn(asked.user) != 0;
    return asked.ended || atomic_load(&interrupted);
}

void progress_begin(struct progress *p)
{
    *p = (struct progress){.started = progress_now()};
    p->shown = p->started;
}

static bool on_terminal(void)
{
    return atomic_load(&enabled) && isatty(STDERR_FILENO) &&
           log_level() >= STRATA_LOG_WARNING;
}

static void describe(char *text, size_t size, const struct progress *p,
                     const struct progress_state *s, double now)
{
    int n = s->impl ? snprintf(text, size, "measuring %.40s, impl %.20s: %zu of %zu",
                               s->layer, s->impl, s->index + 1, s->count)
                    : snprintf(text, size, "%.60s: %zu of %zu", s->layer, s->index + 1,
                               s->count);
    if (s->best_us > 0 && n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, ", best %.1f us", s->best_us);
    double left =
        s->index ? (now - p->started) / (double)s->index * (double)(s->count - s->index)
                 : 0;
    if (s->index && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, ", %.0f s left", left);
}

void progress_show(struct progress *p, const struct progress_state *s)
{
    char text[256];
    bool terminal = on_terminal();
    double now = progress_now();
    if (now - p->shown < (terminal ? TERMINAL_SECONDS : LOG_SECONDS))
        return;
    p->shown = now;
    describe(text, sizeof text, p, s, now);
    text_clean(text, strlen(text), false);
    if (terminal)
        fprintf(stderr, "\r%.110s\033[K", text);
    else
        log_line(STRATA_LOG_INFO, "%s", text);
    p->visible |= terminal;
}

void progress_end(struct progress *p)
{
    if (p->visible)
        fputs("\r\033[K", stderr);
    p->visible = false;
}

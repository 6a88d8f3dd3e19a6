/* SPDX-License-Identifier: Apache-2.0
 *
 * Processes that begin, share and leave devices under load, and compare every row that
 * they compute, bit for bit, with what it must become.
 *
 *   bench/serving/soak [-b] [-k FOLDER] NET.engine DEVICE,...
 *                      [SECONDS [PROCESSES [SEED [WAY]]]]
 *
 * So many processes at a time, each of one of the ways of soak_work.c, by lot or all of
 * WAY, a number: two fifths are killed, at
 * any moment from their begin on, a tenth leave without giving anything back, the others
 * end in order. Exit code 1: a row was wrong, or a process failed or did not end. Of each
 * wrong row is told how it was run and what it looks like; -k keeps it, and what it must
 * be, in files of a folder. -b changes a byte of an answer of each client or context, so
 * that some are wrong.
 */
#include "bench/serving/soak.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_PROCESSES = 64, SHARED = 1 << 30 };

/* Seconds. What is killed is so between its begin and KILL_MOST, what is not runs for
 * LEAST to MOST once it has its engines, or less where all is shorter; what has not ended
 * HANG later hangs. */
static const double LEAST = 1, MOST = 6, KILL_MOST = 9, HANG = 60, REPORT = 10;

enum end { KILLED, LEFT, IN_ORDER };

struct child {
    pid_t pid; /* 0: none */
    enum end end;
    double kill_at;
};

struct counts {
    int begun, killed, left, in_order, failed, hung;
};

static double between(unsigned *seed, double least, double most)
{
    return least + (most - least) * rand_r(seed) / RAND_MAX;
}

static struct soak *share(void)
{
    struct soak *s = mmap(NULL, SHARED, PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (s == MAP_FAILED)
        return NULL;
    s->room = SHARED - sizeof *s;
    return s;
}

static void name_devices(struct soak *s, const char *path, char *devices)
{
    char *rest = devices;
    s->path = path;
    for (char *one; s->n_devices < SOAK_DEVICES && (one = strtok_r(rest, ",", &rest));)
        s->devices[s->n_devices++] = one;
}

static bool make_reference(struct soak *s)
{
    int state = 0;
    const pid_t pid = fork();
    if (pid == 0)
        _exit(soak_reference(s));
    return pid > 0 && waitpid(pid, &state, 0) == pid && WIFEXITED(state) &&
           WEXITSTATUS(state) == 0;
}

static void begin(struct soak *s, struct child *c, struct counts *n, unsigned *seed)
{
    const int way = s->way < 0 ? rand_r(seed) % SOAK_WAYS : s->way;
    const unsigned own = (unsigned)rand_r(seed);
    const double seconds = between(seed, fmin(LEAST, s->seconds), fmin(MOST, s->seconds)),
                 lot = between(seed, 0, 10);
    c->end = lot < 4 ? KILLED : lot < 5 ? LEFT : IN_ORDER;
    c->kill_at = soak_now() + (c->end == KILLED
                                   ? between(seed, 0, fmin(KILL_MOST, 1.5 * s->seconds))
                                   : MOST + HANG);
    c->pid = fork();
    if (c->pid == 0)
        _exit(soak_work(s, way, own, seconds, c->end != LEFT));
    n->begun++;
    if (c->pid < 0) {
        soak_tell(s, "no process can be begun");
        n->failed++;
        c->pid = 0;
    }
}

/* Counts a process that has ended by how it did. */
static void count(struct soak *s, const struct child *c, int state, struct counts *n)
{
    const int code = WIFEXITED(state) ? WEXITSTATUS(state) : -WTERMSIG(state);
    if (code == -SIGKILL && c->end == KILLED)
        n->killed++;
    else if (code == -SIGKILL)
        n->hung++;
    else if (code == 0)
        n->in_order++;
    else if (code == SOAK_LEFT && c->end == LEFT)
        n->left++;
    else {
        n->failed++;
        soak_tell(s, code > 0 ? "a process ended with code %d" : "signal %d ended one",
                  abs(code));
    }
}

static int attend(struct soak *s, struct child *children, int most, struct counts *n)
{
    int alive = 0, state = 0;
    for (int i = 0; i < most; i++) {
        struct child *c = &children[i];
        if (c->pid == 0)
            continue;
        if (soak_now() >= c->kill_at)
            kill(c->pid, SIGKILL);
        if (waitpid(c->pid, &state, WNOHANG) == c->pid) {
            count(s, c, state, n);
            c->pid = 0;
        } else {
            alive++;
        }
    }
    return alive;
}

static unsigned long rows_so_far(struct soak *s)
{
    unsigned long rows = 0;
    for (int i = 0; i < SOAK_WAYS; i++)
        rows += atomic_load(&s->tally[i].rows);
    return rows;
}

static struct counts soak(struct soak *s, int most, unsigned seed)
{
    static struct child children[MOST_PROCESSES];
    const struct timespec tick = {.tv_nsec = 5000000};
    const double start = soak_now();
    struct counts n = {0};
    double told = start;
    for (int alive = 1; alive > 0 || soak_now() - start < s->seconds;) {
        for (int i = 0; i < most && soak_now() - start < s->seconds; i++)
            if (children[i].pid == 0)
                begin(s, &children[i], &n, &seed);
        nanosleep(&tick, NULL);
        alive = attend(s, children, most, &n);
        if (soak_now() - told < REPORT)
            continue;
        told = soak_now();
        fprintf(stderr, "%.0f s: %d begun, %lu rows%s%s\n", told - start, n.begun,
                rows_so_far(s), s->first[0] ? "; " : "", s->first);
    }
    return n;
}

static bool report(struct soak *s, const struct counts *n)
{
    unsigned long bad = 0;
    bool idle = false;
    printf("processes: %d begun, %d ended in order, %d left, %d killed, %d failed, %d "
           "hung\n",
           n->begun, n->in_order, n->left, n->killed, n->failed, n->hung);
    for (int i = 0; i < SOAK_WAYS; i++) {
        struct soak_tally *t = &s->tally[i];
        bad += atomic_load(&t->bad);
        idle = idle || (s->way < 0 && atomic_load(&t->rows) == 0);
        printf("%s: %lu requests, %lu rows, %lu bad\n", soak_ways[i].name,
               atomic_load(&t->requests), atomic_load(&t->rows), atomic_load(&t->bad));
    }
    if (s->first[0])
        printf("first: %s\n", s->first);
    if (idle)
        printf("a way computed nothing: more SECONDS or PROCESSES are needed\n");
    return bad == 0 && n->failed == 0 && n->hung == 0 && !idle;
}

static bool read_options(int argc, char **argv, struct soak *s)
{
    int option;
    while ((option = getopt(argc, argv, "bk:")) != -1) {
        s->breaks = s->breaks || option == 'b';
        s->folder = option == 'k' ? optarg : s->folder;
        if (option == '?')
            return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    struct soak *s = share();
    if (!s) {
        fputs("soak: no memory\n", stderr);
        return 1;
    }
    const bool read = read_options(argc, argv, s);
    argc -= optind - 1;
    argv += optind - 1;
    s->seconds = argc > 3 ? atof(argv[3]) : 60;
    const int most = argc > 4 ? atoi(argv[4]) : 16;
    const unsigned seed = argc > 5 ? (unsigned)atoi(argv[5]) : 1;
    s->way = argc > 6 ? atoi(argv[6]) : -1;
    if (!read || argc < 3 || !(s->seconds > 0) || most < 1 || most > MOST_PROCESSES ||
        s->way >= SOAK_WAYS) {
        fputs("usage: soak [-b] [-k FOLDER] NET.engine DEVICE,... [SECONDS [PROCESSES "
              "[SEED [WAY]]]]\n",
              stderr);
        return 2;
    }
    name_devices(s, argv[1], argv[2]);
    if (!make_reference(s)) {
        fprintf(stderr, "soak: %s\n", s->first);
        return 1;
    }
    printf("%d devices, batches to %lld, %d of %d outputs differ; %s in all places\n",
           s->n_devices, (long long)s->batches[s->n_batches - 1], s->distinct, SOAK_ROWS,
           s->by_place ? "not the same" : "the same");
    fflush(stdout);
    const struct counts n = soak(s, most, seed);
    return report(s, &n) ? 0 : 1;
}

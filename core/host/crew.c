/* SPDX-License-Identifier: Apache-2.0
 *
 * Leaders of teams, the runs that wait for them, and the application's thread that leads
 * its own.
 */
#include "core/host/crew.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "core/alloc.h"
#include "core/team.h"

struct crew {
    pthread_t thread;
    pthread_cond_t wake;
    struct crew *next, *next_idle;
    struct crew_job *job;
    int team; /* threads that it leads; 0: none */
    bool drop_team;
};

/* Runs that a thread makes before it gets the seat; the more, the more often it was
 * somebody's who then had to leave it soon. */
enum { PROOF_LEAST = 512, PROOF_MOST = 1 << 20, SOON = 16 };

/* Of the application's threads; numbers, for a thread may end and its handle return. */
struct seat {
    uint64_t owner, candidate;  /* 0: nobody */
    int64_t proof, in_row, led; /* runs: wanted; of the candidate; of the owner */
    int team;                   /* threads that the owner leads */
    bool inside;                /* the owner is on a run */
    bool unwanted;              /* the owner ends its team when it is back */
    struct wait_watch watch;    /* the owner's */
};

static _Thread_local uint64_t own_number;                /* 0: none yet */
static pthread_mutex_t life = PTHREAD_MUTEX_INITIALIZER; /* guards streams */
static size_t streams;
static struct {
    pthread_mutex_t lock;    /* guards everything below */
    int processors, free;    /* free < 0: one run alone wants more than there are */
    struct crew *all, *idle; /* idle: who led last comes first */
    struct crew_job *first, **last;
    bool stop;
    struct seat seat;
    pthread_key_t seat_left; /* its owner ends */
    uint64_t numbers;        /* given out */
} crews = {
    .lock = PTHREAD_MUTEX_INITIALIZER, .last = &crews.first, .seat.proof = PROOF_LEAST};

bool crew_wanted(int threads)
{
#ifdef _OPENMP
    return threads > 1;
#else
    (void)threads;
    return false;
#endif
}

/* The functions down to crew_thread are called with the lock held. */

/* Whether the oldest job can begin. */
static bool job_fits(void)
{
    return crews.first &&
           (crews.first->threads <= crews.free || crews.free == crews.processors);
}

static struct crew_job *take_job(void)
{
    struct crew_job *job = crews.first;
    crews.first = job->next;
    if (!crews.first)
        crews.last = &crews.first;
    crews.free -= job->threads;
    return job;
}

static void append(struct crew_job *job)
{
    job->next = NULL;
    *crews.last = job;
    crews.last = &job->next;
}

/* The owner is to leave the seat. */
static void want_seat(void)
{
    struct seat *s = &crews.seat;
    if (s->unwanted)
        return;
    s->unwanted = true;
    s->proof = s->led > SOON * s->proof ? PROOF_LEAST : 2 * s->proof;
    s->proof = s->proof < PROOF_MOST ? s->proof : PROOF_MOST;
}

/* Threads that rest in an idle leader's team count for libgomp too, and above the number
 * of processors it lets all teams sleep. */
static void drop_teams(void)
{
    int threads = crews.seat.owner ? crews.seat.team - 1 : 0;
    for (const struct crew *c = crews.all; c; c = c->next)
        threads += c->team > 1 ? c->team - 1 : 0;
    for (struct crew *c = crews.idle; c && threads >= crews.processors; c = c->next_idle)
        if (c->team > 1) {
            threads -= c->team - 1;
            c->drop_team = true;
            pthread_cond_signal(&c->wake);
        }
    if (threads >= crews.processors && crews.seat.owner && !crews.seat.inside)
        want_seat();
}

static void lead(struct crew *c, struct wait_watch *watch)
{
    struct crew_job *job = c->job;
    const int threads = job->threads;
    c->team = threads;
    c->drop_team = false;
    drop_teams();
    pthread_mutex_unlock(&crews.lock);
    wait_begin(watch, job->wait, threads);
    const bool again = job->run(job, watch);
    pthread_mutex_lock(&crews.lock);
    crews.free += threads;
    if (again)
        append(job);
}

static void become_idle(struct crew *c)
{
    c->next_idle = crews.idle;
    crews.idle = c;
}

/* Until there is a job, or all ends. A leader that has none for a second no longer keeps
 * others from spinning. */
static void rest(struct crew *c, struct wait_watch *watch)
{
    struct timespec end;
    while (!c->job && !crews.stop) {
        if (c->drop_team) {
            team_end();
            wait_left(watch);
            c->team = 0;
            c->drop_team = false;
        }
        clock_gettime(CLOCK_REALTIME, &end);
        end.tv_sec++;
        if (!watch->holds)
            pthread_cond_wait(&c->wake, &crews.lock);
        else if (pthread_cond_timedwait(&c->wake, &crews.lock, &end) == ETIMEDOUT)
            wait_rest(watch);
    }
}

static void start_jobs(void);

/* Mutual recursion with start_jobs, by way of the thread that that begins. */
static void *crew_thread(void *arg)
{
    struct crew *c = arg;
    struct wait_watch watch = {0};
    pthread_mutex_lock(&crews.lock);
    while (!crews.stop) {
        rest(c, &watch);
        if (!c->job)
            continue;
        lead(c, &watch);
        c->job = job_fits() ? take_job() : NULL;
        if (!c->job)
            become_idle(c);
        start_jobs();
    }
    pthread_mutex_unlock(&crews.lock);
    wait_end(&watch);
    return NULL;
}

static struct crew *add_crew(strata_error *err)
{
    struct crew *c = zalloc(1, sizeof *c, "a team of threads", err);
    if (!c)
        return NULL;
    pthread_cond_init(&c->wake, NULL);
    if (pthread_create(&c->thread, NULL, crew_thread, c) != 0) {
        error_set(err, STRATA_ENOMEM, "cannot start the thread of a team");
        pthread_cond_destroy(&c->wake);
        free(c);
        return NULL;
    }
    c->next = crews.all;
    crews.all = c;
    become_idle(c); /* its thread will soon be there */
    return c;
}

/* Give jobs to leaders, new ones if need be; without, a job waits for one of those that
 * are there, and one always is. */
static void start_jobs(void)
{
    while (job_fits()) {
        struct crew *c = crews.idle ? crews.idle : add_crew(NULL);
        if (!c)
            return;
        crews.idle = c->next_idle;
        c->job = take_job();
        pthread_cond_signal(&c->wake);
    }
}

/* ---- from outside ------------------------------------------------------------------ */

void crew_offer(struct crew_job *job)
{
    pthread_mutex_lock(&crews.lock);
    append(job);
    start_jobs();
    pthread_mutex_unlock(&crews.lock);
}

int crew_ready(strata_error *err)
{
    pthread_mutex_lock(&crews.lock);
    const bool ready = crews.all || add_crew(err);
    pthread_mutex_unlock(&crews.lock);
    return ready ? STRATA_OK : STRATA_ENOMEM;
}

/* ---- the seat --------------------------------------------------------------------- */

/* Called with the lock held, as all of these; by the owner, or as it ends. */
static void empty_seat(void)
{
    struct seat *s = &crews.seat;
    wait_end(&s->watch);
    s->owner = s->candidate = 0;
}

static void owner_ended(void *seat)
{
    (void)seat;
    pthread_mutex_lock(&crews.lock);
    if (crews.seat.owner == own_number)
        empty_seat();
    pthread_mutex_unlock(&crews.lock);
}

static void leave_seat(void)
{
    pthread_setspecific(crews.seat_left, NULL);
    team_end();
    empty_seat();
}

/* The calling thread asks to lead a run; whether it has the seat, or may take it. */
static bool may_lead(void)
{
    struct seat *s = &crews.seat;
    if (own_number == 0)
        own_number = ++crews.numbers;
    if (s->owner == own_number && s->unwanted)
        leave_seat();
    if (s->candidate != own_number)
        s->in_row = 0;
    s->candidate = own_number;
    s->in_row++;
    return s->owner == own_number || (s->owner == 0 && s->in_row >= s->proof);
}

static bool take_seat(void)
{
    struct seat *s = &crews.seat;
    if (s->owner == own_number)
        return true;
    if (pthread_setspecific(crews.seat_left, s) != 0)
        return false;
    s->owner = own_number;
    s->unwanted = false;
    s->led = 0;
    return true;
}

/* Teams that are to sleep are the crews', who can be told when that ends. */
bool crew_lead(int threads, int wait)
{
    struct seat *s = &crews.seat;
    pthread_mutex_lock(&crews.lock);
    const bool leads = may_lead() && wait != STRATA_WAIT_SLEEP && !crews.first &&
                       threads <= crews.free && take_seat();
    if (leads) {
        crews.free -= threads;
        s->team = threads;
        s->inside = true;
        s->led++;
    }
    pthread_mutex_unlock(&crews.lock);
    if (leads)
        wait_begin(&s->watch, wait, threads);
    return leads;
}

void crew_look(void)
{
    wait_look(&crews.seat.watch);
}

/* A new team's threads come sooner while its leader does not spin: others' teams, for
 * which it does not, are dropped behind the first run. */
void crew_leave(void)
{
    struct seat *s = &crews.seat;
    pthread_mutex_lock(&crews.lock);
    crews.free += s->team;
    s->inside = false;
    if (s->watch.holds) {
        want_seat();
        leave_seat();
    }
    drop_teams();
    start_jobs();
    pthread_mutex_unlock(&crews.lock);
}

/* ---- begin and end ---------------------------------------------------------------- */

void crew_open(void)
{
    pthread_mutex_lock(&life);
    if (streams++ == 0) {
        crews.free = crews.processors = team_processors();
        pthread_key_create(&crews.seat_left, owner_ended);
    }
    pthread_mutex_unlock(&life);
}

static void end_all(void)
{
    pthread_mutex_lock(&crews.lock);
    crews.stop = true;
    for (struct crew *c = crews.all; c; c = c->next)
        pthread_cond_signal(&c->wake);
    pthread_mutex_unlock(&crews.lock);
    while (crews.all) {
        struct crew *c = crews.all;
        crews.all = c->next;
        pthread_join(c->thread, NULL);
        pthread_cond_destroy(&c->wake);
        free(c);
    }
    crews.idle = NULL;
    crews.stop = false;
    wait_end(&crews.seat.watch); /* another thread's; its team goes when that ends */
    crews.seat = (struct seat){.proof = PROOF_LEAST};
    pthread_key_delete(crews.seat_left);
    wait_close();
}

void crew_close(void)
{
    pthread_mutex_lock(&life);
    pthread_mutex_lock(&crews.lock);
    if (own_number != 0 && crews.seat.owner == own_number)
        leave_seat();
    pthread_mutex_unlock(&crews.lock);
    if (--streams == 0)
        end_all();
    pthread_mutex_unlock(&life);
}

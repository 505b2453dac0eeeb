/* Lets the thread sanitizer see the slow path of Swift's Mutex.
 *
 * The fast path of Synchronization.Mutex is compiled into the code that uses it, where the sanitizer sees its atomic
 * operations. Under contention it calls into libswiftSynchronization.so, which is not instrumented: the sanitizer
 * misses that lock and reports a race for what it guards. Preloaded before that library, these functions stand in
 * front of its own, and tell the sanitizer what they do.
 *
 * Built and preloaded by Scripts/sanitize.sh; part of no product.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

/* In the sanitizer's runtime; missing in the uninstrumented programs that inherit the preload. */
extern void __tsan_acquire(void *address) __attribute__((weak));
extern void __tsan_release(void *address) __attribute__((weak));

#define LOCK_SLOW "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF"
#define UNLOCK_SLOW "$s15Synchronization12_MutexHandleV11_unlockSlowyyF"
#define TRY_LOCK_SLOW "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF"

SWIFT void lock_slow(uint32_t thread, SELF void *mutex) __asm__(LOCK_SLOW);
SWIFT void unlock_slow(SELF void *mutex) __asm__(UNLOCK_SLOW);
SWIFT bool try_lock_slow(SELF void *mutex) __asm__(TRY_LOCK_SLOW);

SWIFT void lock_slow(uint32_t thread, SELF void *mutex) {
    SWIFT void (*next)(uint32_t, SELF void *) = dlsym(RTLD_NEXT, LOCK_SLOW);
    next(thread, mutex);
    if (__tsan_acquire) __tsan_acquire(mutex);
}

SWIFT void unlock_slow(SELF void *mutex) {
    SWIFT void (*next)(SELF void *) = dlsym(RTLD_NEXT, UNLOCK_SLOW);
    if (__tsan_release) __tsan_release(mutex);
    next(mutex);
}

SWIFT bool try_lock_slow(SELF void *mutex) {
    SWIFT bool (*next)(SELF void *) = dlsym(RTLD_NEXT, TRY_LOCK_SLOW);
    bool is_locked = next(mutex);
    if (is_locked && __tsan_acquire) __tsan_acquire(mutex);
    return is_locked;
}

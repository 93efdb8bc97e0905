/* sanitizers.h - whether this is a build that a sanitizer watches. */
#ifndef MR_SANITIZERS_H
#define MR_SANITIZERS_H

#ifndef __has_feature
#define __has_feature(x) 0
#endif

#if defined __SANITIZE_THREAD__ || __has_feature(thread_sanitizer)
#define MR_TSAN 1
#else
#define MR_TSAN 0
#endif

#if MR_TSAN || defined __SANITIZE_ADDRESS__ || __has_feature(address_sanitizer) ||                 \
    __has_feature(memory_sanitizer)
#define MR_SANITIZED 1
#else
#define MR_SANITIZED 0
#endif

#endif

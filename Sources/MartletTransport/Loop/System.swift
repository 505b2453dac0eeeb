import CMartletLinux
import CMartletOpenSSL
import Glibc
public import SystemPackage

/// An instant of the monotonic clock (`CLOCK_MONOTONIC`), in nanoseconds since an arbitrary start. All deadlines inside
/// Martlet have this type: eight bytes, compared with one instruction, unaffected by changes of the wall clock.
/// ``distantFuture`` means "no deadline".
package struct MonotonicTime: Comparable, Hashable, Sendable {
    /// Nanoseconds since the clock's start.
    package var nanoseconds: UInt64

    package init(nanoseconds: UInt64) { self.nanoseconds = nanoseconds }

    private init(of clock: clockid_t) {
        var time = timespec()
        unsafe clock_gettime(clock, &time)
        nanoseconds = UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec)
    }

    package static let distantFuture = MonotonicTime(nanoseconds: .max)

    package static func now() -> MonotonicTime { MonotonicTime(of: CLOCK_MONOTONIC) }

    /// The current instant of `CLOCK_BOOTTIME`, which also advances while the computer is suspended.
    package static func sinceBoot() -> MonotonicTime { MonotonicTime(of: CLOCK_BOOTTIME) }

    /// This instant moved by a duration, clamped to the range of instants. ``distantFuture`` does not move.
    package func advanced(by duration: Duration) -> MonotonicTime {
        if self == .distantFuture { return self }
        // `Duration.components` would take three times as long.
        let delta = duration.attoseconds / 1_000_000_000
        let magnitude = UInt64(exactly: delta.magnitude) ?? .max
        let (sum, isOutOfRange) =
            delta < 0
            ? nanoseconds.subtractingReportingOverflow(magnitude) : nanoseconds.addingReportingOverflow(magnitude)
        return MonotonicTime(nanoseconds: isOutOfRange ? (delta < 0 ? 0 : .max) : sum)
    }

    /// The instant after a duration; ``distantFuture`` without a duration.
    package func deadline(after duration: Duration?) -> MonotonicTime { duration.map(advanced(by:)) ?? .distantFuture }

    /// The time from another instant to this one; zero if the other instant is not earlier.
    package func since(_ earlier: MonotonicTime) -> Duration {
        guard self > earlier else { return .zero }
        return .nanoseconds(Int64(clamping: nanoseconds - earlier.nanoseconds))
    }

    package static func < (left: MonotonicTime, right: MonotonicTime) -> Bool { left.nanoseconds < right.nanoseconds }
}

/// Conversions that are safe for every duration. `Duration.components` and arithmetic trap for large durations, so a
/// duration from a setting is ``bounded`` before it is used in a calculation.
extension Duration {
    /// The maximum duration of a setting: a hundred years.
    package static let longest = Duration.seconds(100 * 365 * 86_400)

    /// The duration, clamped to the range from zero to ``longest``.
    package var bounded: Duration { min(max(self, .zero), .longest) }

    /// The whole seconds, or the nearest `Int64`.
    package var wholeSeconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000_000_000_000) }

    /// The whole milliseconds, or the nearest `Int64`.
    package var wholeMilliseconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000_000_000) }

    /// The whole nanoseconds, or the nearest `Int64`.
    package var wholeNanoseconds: Int64 { Int64(clamping: attoseconds / 1_000_000_000) }
}

/// A detached thread of the system, for code that must not run on Swift's cooperative pool.
enum Thread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a thread that ends with its closure. All signals are blocked on it, for the program's own threads.
    /// - Parameters:
    ///   - name: The name in the system's tools, which show at most 15 bytes.
    ///   - stackByteCount: The size of the stack; `nil`, or a size that the system rejects, means the system's default.
    static func start(name: String, stackByteCount: Int? = nil, _ body: @escaping @Sendable () -> Void)
        throws(SystemError)
    {
        var blocked = sigset_t()
        var previous = sigset_t()
        unsafe sigfillset(&blocked)
        unsafe pthread_sigmask(SIG_BLOCK, &blocked, &previous)
        defer { unsafe pthread_sigmask(SIG_SETMASK, &previous, nil) }
        var attributes = pthread_attr_t()
        unsafe pthread_attr_init(&attributes)
        defer { unsafe pthread_attr_destroy(&attributes) }
        if let stackByteCount { unsafe pthread_attr_setstacksize(&attributes, stackByteCount) }
        var thread = pthread_t()
        let argument = unsafe Unmanaged.passRetained(
            Body {
                unsafe name.withCString { _ = unsafe martlet_set_thread_name($0) }
                body()
            })
        let code = unsafe pthread_create(
            &thread, &attributes,
            { argument in
                guard let argument = unsafe argument else { return nil }
                unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, argument.toOpaque())
        guard code == 0 else {
            unsafe argument.release()
            throw SystemError(operation: "pthread_create", code: code)
        }
        pthread_detach(thread)
    }
}

/// The OpenSSL library of this process.
///
/// By default OpenSSL frees its global state when the process exits (`atexit`). If a thread sets up TLS at that moment,
/// it reads freed memory, and the process crashes or hangs. Martlet loads the library without this clean-up, so that a
/// program may return from `main` while calls run. The kernel reclaims the memory.
///
/// The setting applies only if the library is not loaded yet, so all code that may use OpenSSL first calls ``load()``:
/// the event loop, which every session needs, digests, pins, and ``OpenSSLErrors/clear()``, which precedes other uses.
enum OpenSSLLibrary {
    private static let loaded: Void = {
        // Fails only if memory is exhausted. Later calls then fail too, with their own errors.
        _ = OPENSSL_init_ssl(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
    }()

    static func load() { loaded }
}

/// The environment variables of the process.
package enum ProcessEnvironment {
    /// The value of a variable; `nil` if it is not set, or empty. The C library forbids this call while another thread
    /// sets a variable, so it is only for the start of a program or session.
    package static func value(of name: String) -> String? {
        guard let value = unsafe getenv(name), unsafe value.pointee != 0 else { return nil }
        return unsafe String(cString: value)
    }
}

/// Files that are read as a whole: certificates, keys, lists of suffixes, the hosts file.
enum SystemFile {
    /// The identity and the state of a file. If they have changed, the file is read again.
    struct Version: Hashable {
        private let numbers: [Int]

        /// The version of a regular file; `nil` for anything else.
        init?(of path: String) {
            var status = stat()
            guard unsafe stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
            let times = [status.st_mtim, status.st_ctim].flatMap { [Int($0.tv_sec), Int($0.tv_nsec)] }
            let (device, inode) = (Int(truncatingIfNeeded: status.st_dev), Int(truncatingIfNeeded: status.st_ino))
            numbers = [device, inode, Int(status.st_size)] + times
        }
    }

    /// Reads a whole file. Blocks.
    /// - Parameters:
    ///   - limit: The maximum number of bytes, so that a path such as `/dev/zero` cannot fill the memory.
    ///   - flags: Further flags of `open`.
    static func contents(of path: String, limit: Int, flags: Int32 = 0) throws(SystemError) -> [UInt8] {
        let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC | flags)
        guard descriptor >= 0 else { throw SystemError(operation: "open", code: errno) }
        defer { close(descriptor) }
        var contents: [UInt8] = []
        // Enough for a private key: growing the array would leave a copy of the key in freed memory.
        contents.reserveCapacity(64 << 10)
        var chunk = [UInt8](repeating: 0, count: 64 << 10)
        defer { unsafe chunk.withUnsafeMutableBytes { unsafe OPENSSL_cleanse($0.baseAddress, $0.count) } }
        while true {
            let (count, code) = Socket.retrying {
                unsafe chunk.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
            }
            if count < 0 { throw SystemError(operation: "read", code: code) }
            if count == 0 { return contents }
            contents += chunk[..<count]
            if contents.count > limit { throw SystemError(operation: "read", code: EFBIG) }
        }
    }
}

extension FileDescriptor {
    /// Reads the available bytes, up to a limit; empty at the end of the file. Blocks until there are any.
    package func bytes(atMost limit: Int) throws -> [UInt8] {
        try unsafe [UInt8](unsafeUninitializedCapacity: limit) { buffer, count in
            count = unsafe try read(into: UnsafeMutableRawBufferPointer(buffer))
        }
    }
}

/// The name of a file or a directory: a `FilePath` or a `String`.
public protocol FilePathConvertible: Sendable {
    /// The name as a path.
    var filePath: FilePath { get }
}

extension FilePath: FilePathConvertible {
    /// The path itself.
    public var filePath: FilePath { self }
}

extension String: FilePathConvertible {
    /// The path with this text.
    public var filePath: FilePath { FilePath(self) }
}

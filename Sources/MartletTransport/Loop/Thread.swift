import CLinux
import Glibc

/// A detached thread of the system, for what must not run on Swift's cooperative pool.
enum Thread {
    private final class Body: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Starts a thread that ends with its closure. All signals are blocked on it: they are the program's business.
    /// - Parameters:
    ///   - name: At most 15 bytes are shown by the system's tools.
    ///   - stackByteCount: The size of the stack; `nil`, or a size that the system refuses, for the system's default.
    static func start(
        name: String, stackByteCount: Int? = nil, _ body: @escaping @Sendable () -> Void
    ) throws(SystemError) {
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
                let body = unsafe Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
                body.run()
                return nil
            }, argument.toOpaque())
        guard code == 0 else {
            unsafe argument.release()
            throw SystemError(operation: "pthread_create", code: code)
        }
        pthread_detach(thread)
    }
}

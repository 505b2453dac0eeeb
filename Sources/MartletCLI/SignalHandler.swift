import Glibc
import Martlet
import Synchronization

/// The handling of SIGINT and SIGTERM. The handler only writes the signal's number into a pipe, which a thread reads.
/// (Blocking the signals and waiting for them does not work: a thread of the Swift runtime never blocks them.)
enum SignalHandler {
    struct State {
        /// Whether progress bars hide the cursor. It is shown again before a signal ends the program.
        var hidesCursor = false
        /// The state of the terminal that is restored when a signal ends the program.
        var terminal: (descriptor: Int32, state: termios)?
        fileprivate var waiter: CheckedContinuation<Int32?, Never>?
        /// The time at which a task was last notified of a signal.
        fileprivate var lastNotified: ContinuousClock.Instant?
    }

    /// The time within which two signals count as one. The command `timeout` signals a process and then its group. No
    /// user presses a key twice that fast.
    private static let echoTime = Duration.milliseconds(50)
    private static let thread = BlockingThreadPool(threadLimit: 1)
    /// The pipe from the signal handler to the thread. Programs that this one starts do not inherit it.
    private static let pipe = try? FileDescriptor.pipe(options: .closeOnExec)
    /// Shared by the thread that reads the pipe, the task that waits for a signal, and the task that draws.
    private static let state = Mutex(State())

    /// Makes SIGINT and SIGTERM end the program with status 130 and 143, unless a task waits for them. If the program
    /// was started with one of them ignored, it stays ignored. SIGPIPE and SIGXFSZ are ignored, so that writing to a
    /// closed pipe, or beyond the file size limit, fails with an error instead.
    static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        // Without a free descriptor, the signals keep their default effect.
        guard let pipe else { return }
        for number in [SIGINT, SIGTERM] where !isIgnored(number) { signal(number, SignalHandler.handler) }
        thread.submit { while let byte = try? pipe.readEnd.bytes(atMost: 1).first { deliver(Int32(byte)) } }
    }

    /// Whether the program was started with a signal ignored, as by `nohup` and a shell's `&`.
    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard unsafe sigaction(number, nil, &action) == 0 else { return false }
        let handler = unsafe action.__sigaction_handler.sa_handler
        return unsafe unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Waits for SIGINT or SIGTERM, and returns it; `nil` when the task is cancelled. A signal for which no task waits
    /// ends the program.
    static func next() async -> Int32? {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                state.withLock { $0.waiter = continuation }
                // If the task was cancelled before, the cancellation handler has found no waiter.
                if Task.isCancelled { endWait() }
            }
        } onCancel: {
            endWait()
        }
    }

    private static func endWait() { state.withLock { $0.waiter.take() }?.resume(returning: nil) }

    /// Records a change of the terminal's state.
    static func update(_ change: (inout State) -> Void) { state.withLock { change(&$0) } }

    /// The signal handler. It is async-signal-safe, because `pipe` is initialized before the handler is installed.
    private static let handler: @convention(c) (Int32) -> Void = { number in
        let saved = errno
        var byte = UInt8(truncatingIfNeeded: number)
        if let pipe { _ = unsafe write(pipe.writeEnd.rawValue, &byte, 1) }
        errno = saved
    }

    /// Resumes the task that waits for a signal, or ends the program.
    private static func deliver(_ number: Int32) {
        let now = ContinuousClock.now
        let (waiter, isEcho, screen) = state.withLock { state in
            let waiter = state.waiter.take()
            let isEcho = state.lastNotified.map { now - $0 < echoTime } ?? false
            if waiter != nil { state.lastNotified = now }
            return (waiter, isEcho, state)
        }
        if let waiter { return waiter.resume(returning: number) }
        if isEcho { return }
        // No buffer has to be flushed: received bytes are written to their file immediately. The sequence turns
        // wrapping on, shows the cursor, and starts a new line.
        let restoration = "\u{1B}[?7h\u{1B}[?25h\r\n"
        if screen.hidesCursor { _ = unsafe write(STDERR_FILENO, restoration, restoration.utf8.count) }
        if let terminal = screen.terminal {
            var state = terminal.state
            _ = unsafe tcsetattr(terminal.descriptor, TCSANOW, &state)
        }
        _exit(128 + number)
    }
}

/// Standard input, standard output and standard error at the start of the program.
enum StandardDescriptors {
    /// Opens `/dev/null` on each of the three descriptors that is closed. Must run before anything else is opened:
    /// otherwise the next socket could get the number of standard output, and a body would be written into it. Input
    /// and output are opened for reading, so that output still fails as on a closed descriptor; messages to a closed
    /// standard error are discarded.
    static func open() {
        for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) == -1 {
            // This is the lowest free number, because all lower ones are open.
            _ = unsafe Glibc.open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}

/// The command line as other users of the machine see it, for example in `ps`.
enum ProcessTitle {
    /// The end of an argument: a secret, followed by `visibleByteCount` bytes that are not secret.
    private typealias Secret = (suffix: String, visibleByteCount: Int)

    /// Overwrites the secrets in the arguments of the process after they were read, as curl does. Until then they are
    /// visible: a secret that must never be visible belongs in a file of options (`-K`).
    static func hideSecrets(of groups: [TransferOptions]) {
        let secrets = groups.flatMap(ProcessTitle.secrets).filter { !$0.suffix.isEmpty }
        guard !secrets.isEmpty else { return }
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let argument = unsafe CommandLine.unsafeArgv[index] else { continue }
            let text = unsafe String(cString: argument)
            for secret in secrets where text.ends(with: secret.suffix) {
                let end = text.utf8.count - secret.visibleByteCount
                let start = text.utf8.count - secret.suffix.utf8.count
                for offset in start..<max(start, end) {
                    // The text may be longer than the argument's bytes, because invalid UTF-8 was replaced.
                    guard unsafe argument[offset] != 0 else { break }
                    unsafe argument[offset] = 0x2A
                }
            }
        }
    }

    private static func isSecret(_ name: Substring, in group: TransferOptions) -> Bool {
        group.queue.hasSecretFields && !name.hasPrefix("@") || HeadText.isSecret(name)
            || group.queue.secretNames.contains(name.lowercased())
    }

    private static func secrets(of group: TransferOptions) -> [Secret] {
        var values: [String] = []
        var urls = group.urls
        // Values that later options override are on the command line as well.
        for (option, value) in group.given {
            let colon = value.first(":")
            switch option {
            case "user", "oauth2-bearer", "proxy-user", "pass": values.append(value)
            case "cookie" where !value.begins(with: "@") && value.first("=") != nil: values.append(value)
            case "cert": if let colon { values.append(value.rest(after: colon)) }
            case "header":
                guard let colon, isSecret(value[..<colon], in: group) else { continue }
                values.append(value.rest(after: colon))
            case "url", "proxy", "socks5", "socks5-hostname": urls.append(value)
            default: break
            }
        }
        var secrets: [Secret] = values.map { ($0, 0) }
        for url in urls {
            guard let secret = CommandLineURL.userInfo(of: url) else { continue }
            let rest = url[secret.upperBound...].utf8.count
            secrets.append((String(url[secret.lowerBound...]), rest))
        }
        return secrets
    }
}

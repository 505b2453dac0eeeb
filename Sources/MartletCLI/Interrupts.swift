import Glibc
import Martlet
import MartletTransport
import Synchronization
import SystemPackage

/// SIGINT, SIGTERM and SIGPIPE.
///
/// A handler does nothing but write the signal's number into a pipe, and a thread reads it there. (Blocking
/// the signals and waiting for them would not do: the runtime of Swift has a thread on which they are never
/// blocked.)
enum Interrupts {
    private struct State {
        var waiter: CheckedContinuation<Int32, Never>?
        var barIsDrawn = false
        var cursorIsHidden = false
        /// When a task was told of a signal.
        var lastTold: ContinuousClock.Instant?
        var terminal: (descriptor: Int32, state: termios)?
    }

    /// Who signals a process and then its group, as `timeout` does, signals once: nobody presses a key twice so fast.
    private static let echoTime = Duration.milliseconds(50)
    private static let thread = BlockingWorkers(threadLimit: 1)
    /// No program that this one starts inherits it.
    private static let pipe = try? FileDescriptor.pipe(options: .closeOnExec)
    /// Guards the above: the thread that reads the pipe, the task that waits for a signal, the task that
    /// draws.
    private static let state = Mutex(State())

    /// Has SIGINT and SIGTERM end the program, with 130 and 143, unless a task waits for them; one that was ignored before
    /// stays ignored. A pipe nobody reads is an error of the write, not a signal, and so is a file that has the size it may have.
    static func prepare() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        // Without a descriptor to be had the signals do what they do anywhere.
        guard let pipe else { return }
        for number in [SIGINT, SIGTERM] where !isIgnored(number) { signal(number, Interrupts.note) }
        thread.submit {
            while let byte = try? DescriptorReading.read(pipe.readEnd, atMost: 1).first { take(Int32(byte)) }
        }
    }

    /// Whether whoever started the program has it ignore a signal, as `nohup` and a shell's `&` do.
    private static func isIgnored(_ number: Int32) -> Bool {
        var action = sigaction()
        guard unsafe sigaction(number, nil, &action) == 0 else { return false }
        let handler = unsafe action.__sigaction_handler.sa_handler
        return unsafe unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
    }

    /// Waits for SIGINT or SIGTERM; the one after it ends the program at once.
    static func next() async -> Int32 {
        await withCheckedContinuation { continuation in state.withLock { $0.waiter = continuation } }
    }

    /// Whether a progress bar stands on the terminal's last line.
    static var barIsDrawn: Bool {
        get { state.withLock { $0.barIsDrawn } }
        set { state.withLock { $0.barIsDrawn = newValue } }
    }

    /// Whether the terminal's cursor is hidden, behind bars on its last lines.
    static var cursorIsHidden: Bool {
        get { state.withLock { $0.cursorIsHidden } }
        set { state.withLock { $0.cursorIsHidden = newValue } }
    }

    /// A terminal, and the state in which it is left when a signal ends the program.
    static var terminalState: (descriptor: Int32, state: termios)? {
        get { state.withLock { $0.terminal } }
        set { state.withLock { $0.terminal = newValue } }
    }

    /// The handler: only what a handler may do. The pipe was made before it was set.
    private static let note: @convention(c) (Int32) -> Void = { number in
        let saved = errno
        var byte = UInt8(truncatingIfNeeded: number)
        if let pipe { _ = unsafe write(pipe.writeEnd.rawValue, &byte, 1) }
        errno = saved
    }

    private static func take(_ number: Int32) {
        let now = ContinuousClock.now
        let (waiter, isEcho) = state.withLock { state in
            let waiter = state.waiter.take()
            let isEcho = state.lastTold.map { now - $0 < echoTime } ?? false
            if waiter != nil { state.lastTold = now }
            return (waiter, isEcho)
        }
        if let waiter {
            waiter.resume(returning: number)
            return
        }
        if isEcho { return }
        // What was received is in its file already: nothing is buffered here.
        if barIsDrawn { _ = unsafe write(STDERR_FILENO, "\n", 1) }
        // Wrapping on again, the cursor shown, and a line of its own for what follows.
        let restoration = "\u{1B}[?7h\u{1B}[?25h\r\n"
        if cursorIsHidden { _ = unsafe write(STDERR_FILENO, restoration, restoration.utf8.count) }
        if let terminal = terminalState {
            var state = terminal.state
            _ = unsafe tcsetattr(terminal.descriptor, TCSANOW, &state)
        }
        _exit(128 + number)
    }
}

/// Standard input, standard output and standard error at the start of the program.
enum StandardDescriptors {
    /// Opens `/dev/null` on each of the three that is closed.
    ///
    /// Else the next file or socket gets its number: a body would be written into the signal pipe or into another connection.
    /// Input and output are opened for reading, so that output still fails as it does on a closed descriptor; that nobody
    /// reads standard error is not an error.
    ///
    /// Must run before anything else is opened.
    static func open() {
        for number in STDIN_FILENO...STDERR_FILENO where fcntl(number, F_GETFD) == -1 {
            // The lowest free number is this one: those below are open by now.
            _ = unsafe Glibc.open("/dev/null", number == STDERR_FILENO ? O_WRONLY : O_RDONLY)
        }
    }
}

/// What other users of the machine see of the command line, as in `ps`.
enum ProcessTitle {
    /// The end of an argument, and how many of its bytes, before those that stay, are secret.
    private struct Secret {
        var suffix: String
        var keptByteCount = 0
    }

    /// Overwrites what is secret in the arguments of the process, as curl does, once they were read. Whoever looks
    /// before sees it all the same: a file of options (`-K`) is for secrets that nobody must see.
    static func hideSecrets(of groups: [OptionGroup]) {
        let secrets = groups.flatMap(ProcessTitle.secrets).filter { !$0.suffix.isEmpty }
        guard !secrets.isEmpty else { return }
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let argument = unsafe CommandLine.unsafeArgv[index] else { continue }
            let text = unsafe String(cString: argument)
            for secret in secrets where text.ends(with: secret.suffix) {
                let end = text.utf8.count - secret.keptByteCount
                let start = text.utf8.count - secret.suffix.utf8.count
                for offset in start..<max(start, end) {
                    // A text that was mended may be longer than the bytes it was read from.
                    guard unsafe argument[offset] != 0 else { break }
                    unsafe argument[offset] = 0x2A
                }
            }
        }
    }

    private static func isSecret(_ name: Substring, in group: OptionGroup) -> Bool {
        HeadText.isSecret(name) || group.queue.secretNames.contains(name.lowercased())
    }

    private static func secrets(of group: OptionGroup) -> [Secret] {
        var values: [String] = []
        var addresses = group.transfer.urls
        // Of all that was given: a value that another replaced stands on the command line as well.
        for (option, value) in group.given {
            let colon = value.first(":")
            switch option {
            case "user", "oauth2-bearer", "proxy-user", "pass": values.append(value)
            case "cookie" where !value.begins(with: "@") && value.first("=") != nil: values.append(value)
            case "cert": if let colon { values.append(value.rest(behind: colon)) }
            case "header":
                guard let colon, isSecret(value[..<colon], in: group) else { continue }
                values.append(value.rest(behind: colon))
            case "url", "proxy", "socks5", "socks5-hostname": addresses.append(value)
            default: break
            }
        }
        var secrets = values.map { Secret(suffix: $0) }
        for url in addresses {
            let start = url.firstRange(of: "://")?.upperBound ?? url.startIndex
            let authority = url[start...].prefix { !"/?#".contains($0) }
            guard let mark = authority.lastIndex(of: "@") else { continue }
            secrets.append(Secret(suffix: String(url[start...]), keptByteCount: url[mark...].utf8.count))
        }
        return secrets
    }
}

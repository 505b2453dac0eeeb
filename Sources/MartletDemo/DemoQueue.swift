import FoundationEssentials
import Glibc
import Martlet
import MartletTesting
import Synchronization

/// The step with a request that is queued while the origin is down and outlives a process.
enum DemoQueue {
    static let steps = [
        Demo.Step(
            title: "Queue a POST while the origin is down, kill the process, deliver it with another one", run: enqueue)
    ]

    private static func enqueue(_ stage: DemoEnvironment) async throws -> [String] {
        let port = try ReservedPort()
        let url = "https://127.0.0.1:\(port.number)/payments"
        let queue = ["--queue", stage.directory.appending("queue").string]
        let id = try await DemoProcess.run(["queue", "add"] + queue + ["--tag", "demo", "-d", "amount=42", url])
        let refused = try await postpone(queue)
        // The payments that the origin received, by `Idempotency-Key`, and the number of requests with a key.
        let effects = Mutex((payments: [String: String](), requestCount: 0))
        let handler = OriginHandler { request in
            guard let key = request.headers["Idempotency-Key"] else { return .text("no key", status: 400) }
            let text = try await request.collectText()
            let number = effects.withLock { effects in
                effects.payments[key] = effects.payments[key] ?? text
                effects.requestCount += 1
                return effects.requestCount
            }
            // The first payment is made, and its response is lost.
            if number == 1 { throw OriginFault(.cut) }
            return .text("paid", status: 201)
        }
        let options = OriginOptions(binding: .ipv4(port: port.number), tls: .trusted)
        let events = try await TestOrigin.withOrigin(options, handler: handler) { origin in
            port.release()
            let file = stage.directory.appending("queue-ca.pem").string
            let authority = Data((origin.authorityPEM ?? "").utf8)
            try await BlockingThreadPool.shared.run {
                Result { try authority.write(to: URL(filePath: file), options: .atomic) }
            }.get()
            return try await DemoProcess.run(
                ["queue", "run", "--until-empty", "--noproxy", "*", "--cacert", file] + queue)
        }
        let (payments, requestCount) = effects.withLock { $0 }
        try check("the list of payments", Array(payments.values), is: ["amount=42"])
        try check("the number of requests", requestCount, is: 2)
        let lines = events.split(separator: "\n")
        guard let delivered = lines.first(where: { $0.hasPrefix("delivered ") }) else {
            throw DemoError("nothing was delivered: \(events)")
        }
        try check(delivered.contains("[demo]"), "the event has no tag: \(delivered)")
        let left = try await DemoProcess.run(["queue", "list"] + queue)
        try check(left.isEmpty, "the queue holds \(left)")
        return [
            "process 1 stored request \(id.prefix { $0 != "\n" }); process 2 postponed it (\(refused)) and was killed",
            "process 3: \(delivered)", "2 requests with one key, the first without a response: 1 payment",
        ]
    }

    /// Starts a process that tries to send the requests, and kills it after a failed attempt.
    private static func postpone(_ queue: [String]) async throws -> Substring {
        let process = try DemoProcess(["queue", "run", "--noproxy", "*"] + queue)
        let line = await process.line(beginning: "postponed ")
        await process.kill()
        guard let line, let colon = line.firstRange(of: ": ") else {
            throw DemoError("the process reported no postponed request")
        }
        return line[colon.upperBound...].prefix { $0 != "," }
    }
}

/// The steps with failures, which must be reported correctly.
enum DemoFaults {
    static let steps = [
        Demo.Step(
            title: "Reject certificates with the wrong name, an expired one, and an unknown authority",
            run: certificates),
        Demo.Step(title: "Distinguish a truncated body, a reset and a silent server", run: faults),
    ]

    private static func certificates(_ stage: DemoEnvironment) async throws -> [String] {
        var lines: [String] = []
        for tls in [OriginTLS.wrongName, .expired, .unknownAuthority] {
            lines.append(
                try await TestOrigin.withOrigin(.tls(tls), handler: .fixed(.text("never seen"))) { origin in
                    let session = stage.session(trusting: origin)
                    let error = try await failure { try await session.get(origin.url("/")) }
                    try check(error.code == .tlsFailed && !error.wasSent, "the error is \(error)")
                    try check(matches((error.underlying as? TLSError)?.kind, tls), "the reason is \(error.message)")
                    try check(origin.requests.isEmpty, "the origin received a request")
                    return "rejected: \(error.message)"
                })
        }
        return lines
    }

    private static func matches(_ kind: TLSError.Kind?, _ tls: OriginTLS) -> Bool {
        switch (kind, tls) {
        case (.nameMismatch, .wrongName), (.expired, .expired), (.unknownAuthority, .unknownAuthority): true
        default: false
        }
    }

    private static func faults(_ stage: DemoEnvironment) async throws -> [String] {
        let short = RequestOptions { $0.timeouts.head = .milliseconds(300) }
        let cases: [(String, HTTPError.Code)] = [
            ("/truncate/1000", .truncated), ("/truncate/1000?chunked", .truncated), ("/reset/1000", .connectionLost),
            ("/stall", .timedOut),
        ]
        var lines: [String] = []
        for (path, code) in cases {
            // Only the silent route has a short timeout: the others may take longer on a slow machine.
            let options = code == .timedOut ? short : RequestOptions()
            let error = try await failure { try await stage.session.get(stage.origin.url(path), options: options) }
            let isExpected = error.code == code && (code != .timedOut || error.timeout == .head)
            try check(isExpected, "\(path): the error is \(error)")
            lines.append("\(path): \(error.code.rawValue): \(error.message)")
        }
        return lines
    }

    private static func failure(_ call: () async throws -> HTTPExchange) async throws -> HTTPError {
        do {
            let exchange = try await call()
            throw DemoError("the request succeeded, with status \(exchange.response.status.code)")
        } catch let error as HTTPError { return error }
    }
}

/// A child process that runs this program. Its standard output is a pipe; its standard error is inherited.
final class DemoProcess: Sendable {
    private let id: pid_t
    private let output: FileDescriptor
    /// Output that was read and not yet returned as a line.
    private let rest = Mutex<[UInt8]>([])
    /// A separate thread, because waiting for the process blocks it for long.
    private let workers = BlockingThreadPool(threadLimit: 1)

    init(_ arguments: [String]) throws {
        let pipe = try FileDescriptor.pipe()
        defer { try? pipe.writeEnd.close() }
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0)
        unsafe posix_spawn_file_actions_adddup2(&actions, pipe.writeEnd.rawValue, STDOUT_FILENO)
        unsafe posix_spawn_file_actions_addclose(&actions, pipe.writeEnd.rawValue)
        unsafe posix_spawn_file_actions_addclose(&actions, pipe.readEnd.rawValue)
        var words = unsafe (["martlet"] + arguments).map { unsafe strdup($0) } + [nil]
        defer { unsafe words.forEach { unsafe free($0) } }
        var id: pid_t = 0
        let failure = unsafe posix_spawn(&id, "/proc/self/exe", &actions, nil, &words, environ)
        guard failure == 0 else {
            try? pipe.readEnd.close()
            throw DemoError("cannot start another process: \(Errno(rawValue: failure))")
        }
        (self.id, output) = (id, pipe.readEnd)
    }

    deinit { try? output.close() }

    /// Runs a process to its end, and returns its output. Throws a ``DemoError`` if its exit code is not 0.
    static func run(_ arguments: [String]) async throws -> String {
        let process = try DemoProcess(arguments)
        var text = ""
        while let line = await process.line() { text += line + "\n" }
        let status = await process.end()
        try check(status == 0, "“martlet \(arguments.prefix(2).joined(separator: " "))” exited with \(status): \(text)")
        return text
    }

    /// Waits for a line with a prefix; `nil` if the process ends without one.
    func line(beginning prefix: String) async -> String? {
        while let line = await line() { if line.hasPrefix(prefix) { return line } }
        return nil
    }

    func kill() async {
        _ = Glibc.kill(id, SIGKILL)
        _ = await end()
    }

    private func line() async -> String? {
        await workers.run { [self] in
            while true {
                let line = rest.withLock { rest -> String? in
                    guard let end = rest.firstIndex(of: 10) else { return nil }
                    defer { rest.removeSubrange(...end) }
                    return String(decoding: rest[..<end], as: UTF8.self)
                }
                if let line { return line }
                guard let piece = try? output.bytes(atMost: 65_536), !piece.isEmpty else { return nil }
                rest.withLock { $0 += piece }
            }
        }
    }

    /// Waits for the end of the process, and returns its exit code, or 128 plus the number of the signal that ended it.
    private func end() async -> Int32 {
        await workers.run { [id] in
            var status: Int32 = 0
            while unsafe waitpid(id, &status, 0) < 0, errno == EINTR {}
            let signal = status & 0x7F
            return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
        }
    }
}

/// A reserved port of 127.0.0.1 without a listener: connections are refused, and an origin can still bind to it.
final class ReservedPort: Sendable {
    let number: Int
    private let descriptor: FileDescriptor

    init() throws {
        let opened = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        guard opened >= 0 else { throw Errno(rawValue: errno) }
        descriptor = FileDescriptor(rawValue: opened)
        // The origin's socket has this option as well, and can therefore bind to the same port.
        var isOn: Int32 = 1
        let loopback = in_addr(s_addr: UInt32(0x7F00_0001).bigEndian)
        var address = sockaddr_in(
            sin_family: sa_family_t(AF_INET), sin_port: 0, sin_addr: loopback, sin_zero: (0, 0, 0, 0, 0, 0, 0, 0))
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let optionLength = socklen_t(MemoryLayout<Int32>.size)
        let failed = unsafe withUnsafeMutablePointer(to: &address) { pointer in
            unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                unsafe setsockopt(opened, SOL_SOCKET, SO_REUSEADDR, &isOn, optionLength) != 0
                    || bind(opened, generic, length) != 0 || getsockname(opened, generic, &length) != 0
            }
        }
        let code = errno
        number = Int(UInt16(bigEndian: address.sin_port))
        guard !failed else {
            try? descriptor.close()
            throw Errno(rawValue: code)
        }
    }

    /// Closes the reserving socket, once an origin listens on the port.
    func release() { try? descriptor.close() }
}

enum ResidentMemory {
    /// The memory of this process in bytes; `nil` without `/proc`.
    static var byteCount: Int? {
        // Not read with Foundation, which never frees its buffers for such files.
        guard let file = try? FileDescriptor.open(FilePath("/proc/self/statm"), .readOnly, options: .closeOnExec),
            let bytes = try? file.closeAfter({ try file.bytes(atMost: 256) })
        else { return nil }
        let numbers = String(decoding: bytes, as: UTF8.self).split(separator: " ")
        return numbers.count > 1 ? Int(numbers[1]).map { $0 * 4096 } : nil
    }
}

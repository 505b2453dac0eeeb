import Glibc
import MartletTransport
import Synchronization
import SystemPackage

/// This program as another process of its own, with its standard output in a pipe; its errors are those of this one.
final class DemoProcess: Sendable {
    private let id: pid_t
    private let output: FileDescriptor
    /// What was read and is no whole line yet.
    private let rest = Mutex<[UInt8]>([])
    /// Threads of its own: what they wait for takes its time.
    private let workers = BlockingWorkers(threadLimit: 1)

    /// Starts it.
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
            throw DemoFailure("another process could not be started: \(Errno(rawValue: failure))")
        }
        self.id = id
        output = pipe.readEnd
    }

    deinit {
        try? output.close()
    }

    /// Runs it to its end.
    /// - Returns: What it printed.
    /// - Throws: A ``DemoFailure`` where its exit code is not 0.
    static func run(_ arguments: [String]) async throws -> String {
        let process = try DemoProcess(arguments)
        var text = ""
        while let line = await process.line() { text += line + "\n" }
        let status = await process.end()
        try DemoFailure.check(
            status == 0,
            "“martlet \(arguments.prefix(2).joined(separator: " "))” ended with \(status): \(text)")
        return text
    }

    /// Waits for a line that begins so; `nil` where it ends without one.
    func line(beginning prefix: String) async throws -> String? {
        while let line = await line() {
            if line.hasPrefix(prefix) { return line }
        }
        return nil
    }

    /// Ends it without warning.
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
                guard let piece = try? DescriptorReading.read(output, atMost: 65_536), !piece.isEmpty else {
                    return nil
                }
                rest.withLock { $0 += piece }
            }
        }
    }

    /// Waits for its end.
    /// - Returns: Its exit code, or 128 and the signal that ended it.
    private func end() async -> Int32 {
        await workers.run { [id] in
            var status: Int32 = 0
            while unsafe waitpid(id, &status, 0) < 0, errno == EINTR {}
            let signal = status & 0x7F
            return signal == 0 ? (status >> 8) & 0xFF : 128 + signal
        }
    }
}

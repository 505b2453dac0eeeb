import CSoak
import Glibc

/// A peer process of a scenario, so that only the client's memory is measured.
///
/// It is this program with the word `serve`. It ends when its standard input ends, at the latest with this process.
final class Peer: Sendable {
    private let process: pid_t
    private let input: Int32
    /// The words that the process printed when it was ready, such as its ports.
    let words: [String: String]

    /// Starts a process and waits until it is ready.
    init(_ arguments: [String]) throws {
        let (toChild, fromChild) = (try Peer.pipe(), try Peer.pipe())
        defer {
            close(toChild.0)
            close(fromChild.0)
        }
        process = try Peer.spawn(
            [CommandLine.arguments[0], "serve"] + arguments, input: toChild.0, output: fromChild.1)
        close(fromChild.1)
        input = toChild.1
        var words: [String: String] = [:]
        for line in Peer.lines(of: fromChild.0) {
            let parts = line.split(separator: " ", maxSplits: 1).map(String.init)
            if parts.count == 2 { words[parts[0]] = parts[1] }
        }
        self.words = words
        guard words["ready"] != nil else { throw SoakFailure("the peer does not start: \(words)") }
    }

    /// Returns a word as a number.
    func number(_ key: String) throws -> Int {
        guard let number = words[key].flatMap({ Int($0) }) else {
            throw SoakFailure("the peer has no \(key)")
        }
        return number
    }

    /// Ends the process and waits for its end.
    func stop() {
        close(input)
        var status: Int32 = 0
        while unsafe waitpid(process, &status, 0) < 0, errno == EINTR {}
    }

    /// Creates a pipe and returns its reading and its writing end.
    static func pipe() throws -> (Int32, Int32) {
        var ends: [Int32] = [-1, -1]
        guard unsafe soak_pipe(&ends) == 0 else { throw SoakFailure("no pipe: errno \(errno)") }
        return (ends[0], ends[1])
    }

    /// Starts a program and returns its process ID.
    static func spawn(_ line: [String], input: Int32, output: Int32) throws -> pid_t {
        var actions = unsafe posix_spawn_file_actions_t()
        unsafe posix_spawn_file_actions_init(&actions)
        defer { unsafe posix_spawn_file_actions_destroy(&actions) }
        unsafe posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO)
        unsafe posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO)
        var words = unsafe line.map { unsafe strdup($0) } + [nil]
        defer { unsafe words.forEach { unsafe free($0) } }
        var identifier: pid_t = 0
        let code = unsafe posix_spawnp(&identifier, line[0], &actions, nil, &words, Glibc.environ)
        guard code == 0 else { throw SoakFailure("\(line[0]) cannot be started: errno \(code)") }
        return identifier
    }

    /// Returns the lines up to `ready`, or up to the end.
    private static func lines(of descriptor: Int32) -> [String] {
        var text = ""
        var byte: UInt8 = 0
        while unsafe read(descriptor, &byte, 1) == 1 {
            text.unicodeScalars.append(Unicode.Scalar(byte))
            if text.hasSuffix("ready yes\n") { break }
        }
        return text.split(separator: "\n").map(String.init)
    }
}

import ArgumentParser
import Martlet

/// `martlet batch`: the engine for programs in other languages.
struct BatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "batch", abstract: "Read a JSON request per line, and write a JSON reply per line",
        discussion: """
            A request: {"seq":7,"op":"fetch","url":"http://…","method":"GET","headers":[["Name","value"],["Accept",null]],
            "body":null|"bytes","decompress":true,"http_version":"1.1","max_body":n,"timeout_ms":n,"first":false,
            "connect_to":["host:port:address:port"],"ca_file":"path","path_as_is":false,"redirect":"follow|manual",
            "max_redirects":20,"keep_method":[301,302,303],"trusted_redirect":false,"proto_redir":"=https","retry":0,
            "cookie_jar":false,
            "auth":null|{"type":"basic|digest|any","user":"…","password":"…"},"proxy":null|"http://host:port",
            "proxy_user":"user:password","proxy_auth":"basic|digest|any","proxytunnel":false,
            "cache":"none|default|no-cache|force-cache|only-if-cached|no-store|reload"}
            Byte strings are Latin-1: one character U+0000–U+00FF is one byte. Unknown keys are refused in the reply.
            "op" may also be "reset" or "stats". Redirects are answers unless they are to be followed. "first" begins with
            clean connections, cookies and credentials; the cache lives as long as the process. The words of "cache" are
            those of fetch(), and "none" is "no-store"; what it means is sent on to the caches on the way, where there is
            --cache. "source" of a reply is "network", "cache", "validated" or "stale".
            Only "only-if-cached" never asks the network: without a response that may be used, or without --cache, the reply
            has status 504 and the source "cache".
            """)

    @Option(help: "How many requests run at a time.") var parallel = 32

    @Option(name: .customLong("connect-timeout"), help: "How many seconds opening a connection may take.")
    var connectTimeout = 10.0

    @Option(
        help: ArgumentHelp(
            "A folder to keep responses in, or “memory”; none by default.", valueName: "dir|memory"))
    var cache: String?

    mutating func validate() throws {
        guard (1...10_000).contains(parallel) else {
            throw ValidationError("option --parallel: takes a number from 1 to 10000")
        }
        guard connectTimeout > 0, connectTimeout < 1e9 else {
            throw ValidationError("option --connect-timeout: takes a number of seconds above 0")
        }
        guard cache != "" else { throw ValidationError("option --cache: takes a folder, or “memory”") }
    }

    mutating func run() async throws {
        let engine = BatchEngine(
            parallel: parallel, connectTimeout: .seconds(connectTimeout), cache: try await opened())
        let status = await engine.run()
        if status != .success { throw status }
    }

    /// The cache, opened before the first line is read.
    private func opened() async throws(ExitStatus) -> ResponseCache? {
        guard let cache else { return nil }
        if cache == "memory" { return .memoryOnly() }
        do throws(UsageError) {
            let (opened, isThere) = try await CachePlan.open(FilePath(cache))
            if !isThere {
                await Console.report("option --cache: “\(cache)” cannot be made; nothing is stored there")
            }
            return opened
        } catch {
            await error.tell()
            throw error.status
        }
    }
}

/// The lines of standard input, in order, each within a limit.
struct LineReader {
    enum Line: Sendable {
        case bytes([UInt8])
        /// The line was too long, and was skipped.
        case tooLong
    }

    private let limit: Int
    private var input = FileInput(nil).makeAsyncIterator()
    private var buffer: [UInt8] = []
    /// The start of the next line.
    private var start = 0
    /// The end of the bytes without a line feed.
    private var searched = 0
    private var isSkipping = false
    private var isEnded = false

    /// - Parameter limit: The maximum length of a line, in bytes.
    init(limit: Int) { self.limit = limit }

    /// The next line without its end; `nil` after the last. Empty lines are skipped.
    mutating func next() async throws -> Line? {
        while true {
            if let end = buffer[searched...].firstIndex(of: 10) {
                let line = take(to: end)
                (start, searched) = (end + 1, end + 1)
                if let line { return line }
                continue
            }
            searched = buffer.count
            if isEnded {
                let line = take(to: buffer.count, isComplete: false)
                start = buffer.count
                return line
            }
            if buffer.count - start > limit {
                isSkipping = true
                start = buffer.count
            }
            buffer.removeFirst(start)
            searched -= start
            start = 0
            if let piece = try await input.next() { buffer += piece } else { isEnded = true }
        }
    }

    /// The line up to an index; `nil` if it is empty.
    private mutating func take(to end: Int, isComplete: Bool = true) -> Line? {
        if isSkipping {
            isSkipping = false
            return .tooLong
        }
        let line = buffer[start..<end]
        let content = isComplete && line.last == 13 ? line.dropLast() : line
        return content.isEmpty ? nil : .bytes(Array(content))
    }
}

import ArgumentParser
import Martlet
import MartletTransport
import SystemPackage

/// `martlet batch`: the engine for programs in other languages.
struct BatchCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "batch", abstract: "Read one JSON request a line, write one JSON reply a line.",
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

    /// The cache, which is there before the first line is read.
    private func opened() async throws(ExitStatus) -> ResponseCache? {
        guard let cache else { return nil }
        if cache == "memory" { return .memoryOnly() }
        do throws(UsageError) {
            let (opened, isThere) = try await CachePlan.open(FilePath(cache))
            if !isThere {
                await Console.complain(
                    "martlet: option --cache: “\(cache)” cannot be made; nothing is stored there\n")
            }
            return opened
        } catch {
            await Console.complain("martlet: (\(error.status.code)) \(error)\n")
            throw error.status
        }
    }
}

/// What a request of a batch wants of its session: how connections are opened, and whether there are cookies.
struct BatchConnection: Hashable, Sendable {
    /// Other places to connect to.
    var redirections: [ConnectRedirection] = []
    /// A file of authorities that alone are trusted.
    var authorityFile: String?
    /// Whether the session's cookies are sent, and those that come kept; without them, requests take a shorter way.
    package var usesCookies = false

    /// `host:port:address:port`.
    static func redirection(_ text: String) throws(BatchFault) -> ConnectRedirection {
        do throws(UsageError) {
            return try OptionValues.connectTo(text)
        } catch {
            throw BatchFault(.other, "“connect_to”: “\(text)” is not host:port:address:port")
        }
    }
}

/// Lines of standard input, one after the other, each within a limit.
actor LineReader {
    /// A line, or that it was too long and was skipped.
    enum Line: Sendable {
        case bytes([UInt8])
        case tooLong
    }

    private static let workers = BlockingWorkers(threadLimit: 1)
    private let limit: Int
    private var buffer: [UInt8] = []
    /// Where the next line begins.
    private var start = 0
    /// Up to where no line end was found.
    private var searched = 0
    private var isSkipping = false
    private var isEnded = false

    /// Lines of at most so many bytes.
    init(limit: Int) { self.limit = limit }

    /// The next line without its end; `nil` after the last. Empty lines are passed over.
    func next() async throws -> Line? {
        while true {
            if let end = buffer[searched...].firstIndex(of: 10) {
                let line = buffer[start..<end]
                start = end + 1
                searched = start
                if isSkipping {
                    isSkipping = false
                    return .tooLong
                }
                let content = line.last == 13 ? line.dropLast() : line
                if !content.isEmpty { return .bytes(Array(content)) }
                continue
            }
            searched = buffer.count
            if isEnded { return last() }
            if buffer.count - start > limit {
                isSkipping = true
                start = buffer.count
            }
            try await fill()
        }
    }

    private func last() -> Line? {
        let rest = Array(buffer[start...])
        start = buffer.count
        if isSkipping {
            isSkipping = false
            return .tooLong
        }
        return rest.isEmpty ? nil : .bytes(rest)
    }

    private func fill() async throws {
        buffer.removeFirst(start)
        searched -= start
        start = 0
        let result = await LineReader.workers.run {
            Result { try DescriptorReading.read(.standardInput, atMost: 256 * 1024) }
        }
        let piece = try result.get()
        if piece.isEmpty { isEnded = true } else { buffer += piece }
    }
}

import Glibc
import MartletTesting

/// The main function of a peer process: an origin with or without a fault proxy, nginx, or a client.
enum PeerProcess {
    /// Serves `origin`, `storm SEED`, `websocket SEED` or `nginx HOSTS REQUESTS-PER-CONNECTION` until standard input
    /// ends. With `cache` and the words of a ``CacheWork``, `download` and those of a ``SoakDownload``, or `queue` and a
    /// directory, it runs until the work is done.
    static func run(_ words: [String]) async -> Never {
        do {
            switch words.first {
            case "origin": try await serveOrigin(faults: nil, seed: 0)
            case "storm", "websocket":
                try await serveOrigin(
                    faults: words[0] == "storm" ? (.stormy, .stormy) : WebSocketPeer.faults,
                    seed: words.dropFirst().first.flatMap { UInt64($0) } ?? 0)
            case "nginx":
                let numbers = words.dropFirst().compactMap { Int($0) }
                guard numbers.count == 2 else { throw SoakFailure("nginx needs two numbers") }
                try Nginx.serve(
                    hosts: numbers[0], requestsPerConnection: numbers[1], ready: { say($0) }, wait: awaitEnd)
            case "cache":
                guard let work = CacheWork(Array(words.dropFirst())) else {
                    throw SoakFailure("a cache needs six words")
                }
                exit(await work.run() ? 0 : 1)
            case "download":
                guard let work = SoakDownload(Array(words.dropFirst())) else {
                    throw SoakFailure("a download needs four words")
                }
                try await work.run()
            case "queue":
                guard words.count == 2 else { throw SoakFailure("a queue needs its directory") }
                try await SoakQueue(directory: words[1]).run()
            default: throw SoakFailure("serve what?")
            }
            exit(0)
        } catch {
            say(["error": "\(error)"])
            exit(1)
        }
    }

    private static func serveOrigin(faults: (plain: FaultRates, secure: FaultRates)?, seed: UInt64) async throws {
        let gate = Gate()
        let plain = try await TestOrigin.start(handler: PeerRoutes.handler(gate) { nil })
        let secure = try await TestOrigin.start(.tls(), handler: PeerRoutes.handler(gate) { nil })
        var proxies: [FaultProxy] = []
        if let faults {
            proxies = [
                try FaultProxy.start(before: plain, FaultOptions(faults.plain), seed: seed),
                try FaultProxy.start(before: secure, FaultOptions(faults.secure), seed: seed &+ 1),
            ]
        }
        let all = proxies
        let control = try await TestOrigin.start(
            handler: PeerRoutes.handler(gate) {
                let sent = plain.recorder.counts.bytesSent &+ secure.recorder.counts.bytesSent
                return "sent \(sent)\n" + all.map { "\($0.scheme) \($0.counts)\n" }.joined()
            })
        var words = [
            "plain": "\(proxies.first?.port ?? plain.port)", "secure": "\(proxies.last?.port ?? secure.port)",
            "control": "\(control.port)",
        ]
        words["authority"] = secure.authorityPEM?.split(separator: "\n").joined(separator: "|")
        say(words)
        // The main thread can block, because no other code needs it here.
        awaitEnd()
        gate.open()
        for proxy in proxies { await proxy.stop() }
        for origin in [plain, secure, control] { await origin.stop() }
    }

    /// Prints words for the other process.
    private static func say(_ words: [String: String]) {
        for (key, value) in words { print(key, value) }
        print("ready yes")
        fflush(nil)
    }

    private static func awaitEnd() {
        var byte: UInt8 = 0
        while true {
            let count = unsafe read(STDIN_FILENO, &byte, 1)
            if count == 0 || (count < 0 && errno != EINTR) { return }
        }
    }
}

import Glibc
import Martlet
import SystemPackage

/// Submits to an offline queue, or sends its requests, until it is done or killed.
///
/// `MartletOfflineChild submit DIRECTORY URL COUNT LANES` submits requests to the lanes in turn, and prints their keys.
/// `MartletOfflineChild run DIRECTORY` sends until no request waits.
/// `MartletOfflineChild both DIRECTORY URL COUNT LANES` does both concurrently.
@main
enum MartletOfflineChild {
    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        do {
            switch (words.first, words.count) {
            case ("submit", 5): try await work(words, sends: false)
            case ("both", 5): try await work(words, sends: true)
            case ("run", 2): try await run(words[1])
            default:
                say("usage")
                exit(2)
            }
        } catch {
            say("failed \(error)")
            exit(1)
        }
    }

    private static func queue(_ directory: String, sends: Bool = true) async throws -> OfflineQueue {
        var configuration = SessionConfiguration.ephemeral
        configuration.timeouts = Timeouts(
            connect: .seconds(300), head: .seconds(300), idle: .seconds(300), total: nil)
        let options = OfflineQueueOptions(
            backoff: OfflineBackoff(initialDelay: .milliseconds(1), maximumDelay: .milliseconds(20)),
            sendsRequests: sends)
        return try await OfflineQueue(
            session: HTTPSession(configuration: configuration), directory: FilePath(directory),
            options: options)
    }

    private static func work(_ words: [String], sends: Bool) async throws {
        let queue = try await queue(words[1], sends: sends)
        let lanes = max(1, Int(words[4]) ?? 1)
        for number in 0..<(Int(words[3]) ?? 1) {
            let request = try HTTPRequest(method: .post, url: "\(words[2])\(number)")
            let ticket = try await queue.submit(
                request, body: .text("number \(number)"), lane: "lane \(number % lanes)", tag: "\(number)")
            say("submitted \(number) \(ticket.idempotencyKey ?? "none")")
        }
        if sends { try await queue.drained }
        await queue.close()
        say("done")
    }

    private static func run(_ directory: String) async throws {
        let queue = try await queue(directory)
        let events = queue.events
        try await queue.drained
        await queue.close()
        for await event in events {
            switch event {
            case .delivered(let ticket, _): say("delivered \(ticket.tag ?? "")")
            case .dead(let ticket, let letter): say("dead \(ticket.tag ?? "") \(letter.message)")
            case .uncertain(let ticket, _): say("uncertain \(ticket.tag ?? "")")
            default: break
            }
        }
        say("done")
    }

    private static func say(_ line: String) {
        let bytes = Array((line + "\n").utf8)
        // One unbuffered call: the process may be killed at any time.
        _ = unsafe bytes.withUnsafeBytes { unsafe write(STDOUT_FILENO, $0.baseAddress, $0.count) }
    }
}

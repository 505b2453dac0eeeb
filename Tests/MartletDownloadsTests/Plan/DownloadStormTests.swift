import Martlet
import MartletTesting
import MartletTransport
import Testing

@testable import MartletDownloads

@Suite("Download machine: random events")
struct DownloadStormTests {
    /// A server with random responses, from successive versions of a file.
    private final class Server {
        var random: SeededGenerator
        var files: [SimulatedFile] = []
        var present = 0
        /// The number of wrong responses per hundred.
        let malice: Int

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            malice = Int.random(in: 0...60, using: &random)
            for version in 1...3 {
                var file = SimulatedFile(byteCount: UInt64.random(in: 0...20 << 20, using: &random))
                file.version = version
                file.tag =
                    ["\"\(version)\"", "\"\(version)\"", "W/\"\(version)\"", nil]
                    .randomElement(using: &random) ?? nil
                file.hasRanges = Int.random(in: 0..<5, using: &random) > 0
                file.sendsLength = Int.random(in: 0..<5, using: &random) > 0
                files.append(file)
            }
        }

        func reply(_ rangeRequest: DownloadRequest) throws -> SimulatedDownload.Reply {
            if Int.random(in: 0..<40, using: &random) == 0 { present = min(present + 1, 2) }
            let file = files[present]
            guard Int.random(in: 0..<100, using: &random) < malice else { return try file.reply(rangeRequest) }
            var reply = try file.reply(rangeRequest)
            switch Int.random(in: 0..<10, using: &random) {
            case 0: return SimulatedDownload.Reply()
            case 1: return SimulatedDownload.Reply(responseHead: nil, end: .crowded)
            case 2:
                let status = [301, 401, 403, 404, 416, 429, 500, 503].randomElement(using: &random) ?? 500
                // Most of these statuses are transient.
                return SimulatedDownload.Reply(
                    responseHead: try DownloadResponseHead.sample(
                        Bool.random(using: &random) ? 503 : status, byteCount: 0))
            case 3...5: reply.cut = UInt64.random(in: 0...reply.byteCount, using: &random)
            case 6: reply.byteCount = UInt64.random(in: 0...reply.byteCount, using: &random)
            case 7:
                reply.responseHead?.part =
                    [
                        .none, .unreadable("x"), .range(.unsatisfied(total: 5)),
                        .range(.satisfied(0..<5, total: nil)),
                        .range(.satisfied(0..<UInt64.max, total: .max)),
                    ].randomElement(using: &random) ?? .unreadable("")
            case 8: reply.responseHead?.isMultipart = true
            default:
                var lied = rangeRequest
                lied.condition = nil
                return try file.reply(lied)
            }
            return reply
        }
    }

    private func options(_ random: inout SeededGenerator) -> DownloadOptions {
        var options = DownloadOptions()
        options.segments = Int.random(in: 1...6, using: &random)
        options.retry = DownloadRetry(maximumRetries: Int.random(in: 0...6, using: &random))
        options.resumption = [.automatic, .unverified, .restart].randomElement(using: &random) ?? .automatic
        if Int.random(in: 0..<4, using: &random) == 0 { options.sequentialWindow = 2_000_000 }
        if Int.random(in: 0..<4, using: &random) == 0 { options.byteLimit = 15_000_000 }
        if Int.random(in: 0..<4, using: &random) == 0 {
            options.checksum = Checksum(.md5, Array(repeating: 0, count: 16))
        }
        return options
    }

    @Test(
        "Six hundred random runs end or still have a transfer or a wait, and mix no distinguishable versions"
    )
    func storms() async throws {
        var completed = 0
        for seed in 1...600 as ClosedRange<UInt64> {
            let server = Server(seed: seed)
            let choice = options(&server.random)
            var record: ResumeRecord?
            if Bool.random(using: &server.random), server.files[0].byteCount > 1_000_000 {
                let file = server.files[0]
                let end = UInt64.random(in: 0..<file.byteCount, using: &server.random)
                record = file.record(RangeSet([0..<end]), total: file.sendsLength ? file.byteCount : nil)
            }
            var download = try SimulatedDownload(choice, record: record) { rangeRequest, _ in
                try server.reply(rangeRequest)
            }
            download.chance = Double.random(in: 0...1, using: &server.random)
            let speeds = (0..<8).map { _ in Double.random(in: 1e6...2e7, using: &server.random) }
            download.speed = { id, _ in speeds[Int(id % 8)] }
            let stopsAt = Int.random(in: 0..<10, using: &server.random) == 0 ? 2.0 : 900
            download.run(seconds: stopsAt, step: .milliseconds(100))
            if stopsAt == 2.0, download.outcome == nil { download.stop() }
            #expect(download.outcome != nil, "seed \(seed): \(download.asked.suffix(5))")
            #expect(download.activeCount == 0, "seed \(seed)")
            // Late events are accepted.
            for id in 0...5 as ClosedRange<UInt64> {
                download.perform(download.machine.ended(id, .finished, now: download.now, random: 0.5))
                #expect(download.machine.accept(id, 10, now: download.now) == nil)
            }
            if download.isComplete {
                completed += 1
                let total = download.machine.plan?.total ?? 0
                #expect(download.disk == RangeSet(total == 0 ? [] : [0..<total]), "seed \(seed)")
            }
            // A range without a tag, despite If-Range, is taken for the requested one.
            if download.mixedCount > 0, server.files.allSatisfy({ $0.tag != nil }) {
                #expect(download.machine.isUnproven, "seed \(seed): \(download.mixedCount) bytes are mixed")
            }
            if seed % 20 == 0 { await Task.yield() }
        }
        #expect(completed > 100, "\(completed)")
    }

    @Test("Three hundred random runs with mirrors end, also if no file has the checksum, and mix no tagged versions")
    func mirrors() async throws {
        var (completed, shared) = (0, 0)
        for seed in 1...300 as ClosedRange<UInt64> {
            let servers = (0..<3).map { Server(seed: seed * 8 + $0) }
            var random = SeededGenerator(seed: seed)
            for index in 1...2 {
                guard Bool.random(using: &random) else {
                    servers[index].files = servers[0].files
                    continue
                }
                for number in servers[index].files.indices {
                    servers[index].files[number].version += 10 * index
                    servers[index].files[number].tag = servers[index].files[number].tag.map {
                        "\($0.dropLast())-\(index)\""
                    }
                    if Bool.random(using: &random) {
                        servers[index].files[number].byteCount = servers[0].files[number].byteCount
                    }
                }
            }
            var choice = options(&random)
            choice.mirrors = [try HTTPURL("http://one.example/a.bin"), try HTTPURL("http://two.example/a.bin")]
            if Int.random(in: 0..<4, using: &random) == 0 { choice.expectedByteCount = servers[0].files[0].byteCount }
            var download = try SimulatedDownload(choice) { request, _ in try servers[request.source].reply(request) }
            download.chance = Double.random(in: 0...1, using: &random)
            let speeds = (0..<8).map { _ in Double.random(in: 1e6...2e7, using: &random) }
            download.speed = { id, _ in speeds[Int(id % 8)] }
            download.run(seconds: 3_600, step: .milliseconds(100))
            if download.isComplete {
                completed += 1
                let total = download.machine.plan?.total ?? 0
                #expect(download.disk == RangeSet(total == 0 ? [] : [0..<total]), "seed \(seed)")
                if download.machine.sources.count(where: { $0.byteCount > 0 }) > 1 { shared += 1 }
                if let expected = choice.expectedByteCount { #expect(total == expected, "seed \(seed)") }
            }
            if download.mixedCount > 0, servers.allSatisfy({ $0.files.allSatisfy { $0.tag != nil } }) {
                #expect(download.machine.isUnproven, "seed \(seed): \(download.mixedCount) bytes are mixed")
            }
            // Each mismatch leaves one server fewer, after one for the bytes of several.
            for _ in 0..<12 where download.isComplete {
                download.mismatch()
                download.run(seconds: 3_600, step: .milliseconds(100))
            }
            #expect(download.error != nil, "seed \(seed): \(download.asked.suffix(5))")
            #expect(download.activeCount == 0, "seed \(seed)")
            if seed % 20 == 0 { await Task.yield() }
        }
        #expect(completed > 100 && shared > 30, "\(completed) complete, \(shared) from several servers")
    }
}

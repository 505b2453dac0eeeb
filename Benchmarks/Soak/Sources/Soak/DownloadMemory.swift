import Glibc
import Martlet

/// A scenario with ten gigabytes over four connections, during which the memory must not grow.
struct DownloadMemory: SoakScenario {
    let name = "download-memory"

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let total = UInt64(options.count ?? 10_000_000_000)
        let peer = try Peer(["origin"])
        defer { peer.stop() }
        let directory = try CacheDirectory()
        defer { directory.remove() }
        let session = peer.session()
        let path = "\(directory.path)/file"
        let start = ContinuousClock.now
        let result = try await session.download(
            try peer.url("/file/\(total)").absoluteForm, to: FilePath(path),
            options: DownloadOptions(segments: 4))
        let seconds = (ContinuousClock.now - start).seconds
        report.add("bytes", Int(result.byteCount), exactly: Int(total))
        report.add(
            "peak resident memory", Double(ProcessFigures.peakResidentBytes) / 1e6, atMost: 64,
            unit: "MB")
        report.note("megabytes per second", SoakReport.short(Double(total) / 1e6 / seconds))
        report.add("correct file", try SoakDownload.isPattern(path, total) ? 1 : 0, exactly: 1)
    }
}

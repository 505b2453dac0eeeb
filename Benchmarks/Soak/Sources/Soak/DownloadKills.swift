import Glibc
import Martlet
import MartletTesting

/// A scenario with a download whose process is killed a hundred times at random moments. The file must be complete in
/// the end, with few bytes fetched twice.
struct DownloadKills: SoakScenario {
    let name = "download-kills"

    private static let byteCount: UInt64 = 256 << 20
    /// The bandwidth limit of the processes, which bounds the bytes between two checkpoints.
    private static let bytesPerSecond = 64 << 20

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let count = options.count ?? 100
        report.note("seed", "\(options.seed)")
        var generator = SeededGenerator(seed: options.seed)
        let peer = try Peer(["origin"])
        defer { peer.stop() }
        let control = peer.session()
        let directory = try CacheDirectory()
        defer { directory.remove() }
        var (kills, files, wrong, failed) = (0, 0, 0, 0)
        let url = try peer.url("/file/\(DownloadKills.byteCount)").absoluteForm
        let before = try await SoakDownload.sent(peer, control)
        while kills < count {
            let path = "\(directory.path)/file-\(files)"
            var isNamed = false
            while true {
                let work = SoakDownload(
                    url: url, path: path, segments: 4, bytesPerSecond: DownloadKills.bytesPerSecond)
                // The delay ranges from before the first byte to about a quarter of the file.
                let delay = UInt32(generator.next() % 1_000_000)
                let status = try await work.runAsProcess(killAfter: kills < count ? delay : nil)
                if status == nil {
                    kills += 1
                    // The process was killed between renaming the file and its own end: this run was the last one.
                    isNamed = directory.names.contains("file-\(files)")
                    if isNamed { break }
                    continue
                }
                if status != 0 { failed += 1 }
                break
            }
            files += 1
            if try !SoakDownload.isPattern(path, DownloadKills.byteCount) { wrong += 1 }
            if !isNamed, directory.names.contains(where: { $0.contains(".martlet-") }) { wrong += 1 }
            unsafe unlink(path)
        }
        let sent = try await SoakDownload.sent(peer, control) - before
        let extra = Double(sent) - Double(files) * Double(DownloadKills.byteCount)
        report.add("killed", Double(kills), atLeast: Double(count), unit: "times")
        report.note("files", "\(files)")
        report.add("wrong files", wrong, exactly: 0)
        report.add("failed runs", failed, exactly: 0)
        // A checkpoint is written every 200 ms here; chunks in flight are the bytes in the buffers of four connections.
        let allowed = Double(DownloadKills.bytesPerSecond) * 0.4 + 4 * 4 * 1_048_576
        report.add(
            "fetched twice per kill", max(0, extra) / Double(max(1, kills)) / 1_048_576,
            atMost: allowed / 1_048_576, unit: "MiB")
    }
}

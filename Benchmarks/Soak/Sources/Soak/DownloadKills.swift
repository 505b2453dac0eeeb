import Glibc
import Martlet
import MartletTesting

/// A download whose process is killed a hundred times at random moments: the file is whole in the end, and little of it is
/// fetched twice.
struct DownloadKills: SoakScenario {
    let name = "download-kills"

    private static let byteCount: UInt64 = 256 << 20
    /// What comes between two checkpoints, at the rate that the processes are held to.
    private static let bytesPerSecond = 64 << 20

    func run(_ options: SoakOptions, _ report: inout SoakReport) async throws {
        let count = options.count ?? 100
        report.note("seed", "\(options.seed)")
        var generator = SeededGenerator(seed: options.seed)
        let peer = try Peer(["origin"])
        defer { peer.stop() }
        let control = peer.session()
        let folder = try CacheDirectory()
        defer { folder.remove() }
        var (kills, files, wrong, failed) = (0, 0, 0, 0)
        let url = try peer.url("/file/\(DownloadKills.byteCount)").absoluteForm
        let before = try await SoakDownload.sent(peer, control)
        while kills < count {
            let path = "\(folder.path)/file-\(files)"
            var isNamed = false
            while true {
                let work = SoakDownload(
                    url: url, path: path, segments: 4, bytesPerSecond: DownloadKills.bytesPerSecond)
                // From before the first byte to about a quarter of the file.
                let delay = UInt32(generator.next() % 1_000_000)
                let status = try await work.runAsProcess(killAfter: kills < count ? delay : nil)
                if status == nil {
                    kills += 1
                    // Killed between giving the file its name and its own end: that run was the last one.
                    isNamed = folder.names.contains("file-\(files)")
                    if isNamed { break }
                    continue
                }
                if status != 0 { failed += 1 }
                break
            }
            files += 1
            if try !SoakDownload.isPattern(path, DownloadKills.byteCount) { wrong += 1 }
            if !isNamed, folder.names.contains(where: { $0.contains(".martlet-") }) { wrong += 1 }
            unsafe unlink(path)
        }
        let sent = try await SoakDownload.sent(peer, control) - before
        let extra = Double(sent) - Double(files) * Double(DownloadKills.byteCount)
        report.add("killed", Double(kills), atLeast: Double(count), unit: "times")
        report.note("files", "\(files)")
        report.add("files that are not what was sent", wrong, exactly: 0)
        report.add("runs that failed", failed, exactly: 0)
        // A checkpoint comes every 200 ms here; chunks in flight are what four connections have in their buffers.
        let allowed = Double(DownloadKills.bytesPerSecond) * 0.4 + 4 * 4 * 1_048_576
        report.add(
            "fetched twice, for each kill", max(0, extra) / Double(max(1, kills)) / 1_048_576,
            atMost: allowed / 1_048_576, unit: "MiB")
    }
}

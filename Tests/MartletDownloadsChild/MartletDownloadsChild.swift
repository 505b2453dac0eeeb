import Glibc
import Martlet

/// Downloads files, and may be killed while it does: `MartletDownloadsChild one URL FILE [NAME=VALUE …]`,
/// `MartletDownloadsChild many URL FOLDER COUNT`, or `MartletDownloadsChild managed URL FILE DIRECTORY [NAME=VALUE …]`.
///
/// It writes a line for each file: `finished …`, `failed …` or `paused …`; and `peak=` with its peak memory in KiB.
@main
enum MartletDownloadsChild {
    static func main() async {
        let words = Array(CommandLine.arguments.dropFirst())
        guard words.count >= 3 else { exit(64) }
        let work = DownloadWork(settings: Array(words.dropFirst(3)))
        switch words[0] {
        case "one": await work.one(from: words[1], to: words[2])
        case "managed" where words.count > 3: await work.managed(from: words[1], to: words[2], in: words[3])
        case "many" where words.count > 3:
            await work.many(from: words[1], into: words[2], count: Int(words[3]) ?? 0)
        default: exit(64)
        }
        exit(0)
    }
}

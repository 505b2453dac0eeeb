import Glibc

/// Stores and reads pages through a session, in a folder that others may use: `MartletClientChild` and the words of a
/// ``CacheWork``.
@main
enum MartletClientChild {
    static func main() async {
        guard let work = CacheWork(Array(CommandLine.arguments.dropFirst())) else { exit(64) }
        exit(await work.run() ? 0 : 1)
    }
}

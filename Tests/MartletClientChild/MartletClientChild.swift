import Glibc

/// Runs one of three kinds of work:
///
/// - `MartletClientChild` and the words of a ``CacheWork`` stores and reads pages through a session in a shared
///   directory.
/// - `MartletClientChild address ADDRESS` holds connections from an address that is removed.
/// - `MartletClientChild exit DELAY` exits after a delay in microseconds, while calls set up TLS.
@main
enum MartletClientChild {
    static func main() async throws {
        let words = Array(CommandLine.arguments.dropFirst())
        if words.count == 2, words[0] == "address" {
            try await AddressWork(address: words[1]).run()
            exit(0)
        }
        if words.count == 2, words[0] == "exit", let delay = UInt32(words[1]) {
            try await ExitWork(delay: delay).run()
        }
        guard let work = CacheWork(words) else { exit(64) }
        exit(await work.run() ? 0 : 1)
    }
}

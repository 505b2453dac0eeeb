import Glibc

/// Stores and reads pages through a session, in a folder that others may use: `MartletClientChild` and the words of a
/// ``CacheWork``; or holds connections from an address that goes: `address` and the address; or exits
/// while calls set TLS up: `exit` and the delay in microseconds.
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

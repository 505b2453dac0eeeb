import MartletCore

/// Fetches a URL and prints the body.
@main
struct HelloCore {
    static func main() async throws {
        print(try await HTTPSession().get(CommandLine.arguments[1]).validated().text)
    }
}

import AsyncHTTPClient

/// Fetches a URL and prints the body.
@main
struct HelloPeer {
    static func main() async throws {
        let client = HTTPClient.shared
        let response = try await client.execute(
            HTTPClientRequest(url: CommandLine.arguments[1]), timeout: .seconds(60))
        print(String(buffer: try await response.body.collect(upTo: 16 << 20)))
    }
}

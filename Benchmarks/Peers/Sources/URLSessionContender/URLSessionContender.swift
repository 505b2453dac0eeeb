import Foundation
import FoundationNetworking
import Measure

/// FoundationNetworking's URLSession as a contender: `SCENARIO URL [NAME=VALUE …]`.
///
/// On Linux it cannot trust another certificate authority, and therefore does not take part in TLS scenarios.
@main
struct URLSessionContender: Client {
    static func main() {
        Program.main { arguments in
            guard let url = URL(string: arguments.url) else { throw URLError(.badURL) }
            try await Measurement(arguments, of: URLSessionContender(arguments, url: url)).run()
        }
    }

    let session: URLSession
    let url: URL

    init(_ arguments: Arguments, url: URL) {
        let configuration = URLSessionConfiguration.default
        configuration.httpMaximumConnectionsPerHost = arguments.number("connections", 1)
        switch arguments["cache"] {
        case "memory":
            configuration.urlCache = URLCache(memoryCapacity: 64 << 20, diskCapacity: 0, diskPath: nil)
        case let directory?:
            configuration.urlCache = URLCache(memoryCapacity: 0, diskCapacity: 2 << 30, diskPath: directory)
        case nil:
            configuration.urlCache = nil
            configuration.requestCachePolicy = .reloadIgnoringLocalCacheData
        }
        session = URLSession(configuration: configuration)
        self.url = url
    }

    private func body() async throws -> Data {
        let (body, response) = try await session.data(from: url)
        guard let response = response as? HTTPURLResponse, response.statusCode == 200 else {
            throw URLError(.badServerResponse)
        }
        return body
    }

    func get() async throws -> UInt8? {
        try await body().first
    }

    func discard() async throws -> Int {
        try await withCheckedThrowingContinuation { continuation in
            let own = URLSession(
                configuration: session.configuration, delegate: Discarder(continuation), delegateQueue: nil)
            own.dataTask(with: url).resume()
            own.finishTasksAndInvalidate()
        }
    }
}

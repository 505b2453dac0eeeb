import Foundation
import Martlet
import MartletTesting
import MartletXML
import Synchronization
import Testing

/// The features of MKNetworkKit 1 that its operations and their hosts have.
enum OperationScenarios {
    static let all = [
        MigrationScenario("K9", "Each web service has its own fields, endpoints and reachability", services),
        MigrationScenario("K10", "A form has fields, data and files, and an exact length", multipart),
        MigrationScenario("K11", "One body goes to several outputs", outputs),
        MigrationScenario("K12", "A response is read as XML", xml),
        MigrationScenario("K14", "A request is written as a curl command, with its secrets masked", curl),
    ]

    private struct Forecast: Decodable, Equatable { var sky: String }

    private struct ForecastForCity: HTTPEndpoint {
        typealias Response = Forecast
        var city: String
        var path: String { "forecast" }
        var parameters: [String: String] { ["city": city] }
    }

    static func services() async throws {
        try await TestOrigin.withOrigin { request in
            .json(text: #"{"sky":"\#(request.target) \#(request.headers["Accept-Language"] ?? "")"}"#)
        } run: { origin async throws in
            let network = ManualNetworkPath(NetworkPath([NetworkInterface(name: "wlan0", kind: .wifi)]))
            let session = HTTPSession.plain { $0.networkMonitor = network.monitor }
            for language in ["de", "fi"] {
                let weather = try session.host(origin.url("/v1"), headers: [.acceptLanguage: language])
                let forecast = try await weather.call(ForecastForCity(city: "Oulu"))
                #expect(forecast == Forecast(sky: "/v1/forecast?city=Oulu \(language)"))
            }
            let away = try session.host("http://192.0.2.1/")
            var reachability = away.reachability().makeAsyncIterator()
            #expect(await reachability.next(isolation: nil)?.isReachable == true)
            network.set(.unsatisfied)
            #expect(await reachability.next(isolation: nil) == HostReachability(.unreachable))
        }
    }

    static func multipart() async throws {
        try await withDirectory { directory async throws in
            try directory.write("from a file", to: "note.txt")
            try await TestOrigin.withOrigin(handler: .echo) { origin async throws in
                let body = HTTPBody.multipart { form in
                    form.field("title", "Harbour")
                    form.data("data", Array("in memory".utf8), filename: "d.bin", contentType: "image/png")
                    form.file("file", at: directory.file("note.txt"))
                }
                let report: EchoReport = try await HTTPSession.plain().post(origin.url(), body: body).decode()
                #expect(report.header("Content-Length") == "\(report.bodyLength)")
                let boundary = try #require(report.header("Content-Type")?.split(separator: "boundary=").last)
                let parts = try #require(report.body?.components(separatedBy: "--\(boundary)"))
                #expect(parts.count == 5)
                #expect(parts.last == "--\r\n")
                for (part, (name, text)) in zip(
                    parts.dropFirst(),
                    [
                        ("name=\"title\"", "Harbour"), ("filename=\"d.bin\"", "in memory"),
                        ("filename=\"note.txt\"", "from a file"),
                    ])
                {
                    #expect(part.contains(name))
                    #expect(part.hasSuffix("\r\n\r\n\(text)\r\n"))
                }
                #expect(parts[2].contains("Content-Type: image/png"))
                #expect(parts[3].contains("Content-Type: text/plain"))
            }
        }
    }

    static func outputs() async throws {
        try await withDirectory { directory async throws in
            try await TestOrigin.withOrigin(handler: .bytes(1_000_000)) { origin async throws in
                let bytes = TestPattern.bytes(from: 0, count: 1_000_000)
                let digest = DigestSink(.sha256)
                let collected = Mutex<[UInt8]>([])
                let request = try HTTPRequest(method: .get, url: origin.url())
                let results = try await HTTPSession.plain().stream(request) { _, body in
                    try await body.tee(to: [
                        FileSink(directory.file("copy")), digest,
                        ClosureSink { piece in collected.withLock { $0 += piece } },
                    ])
                }
                #expect(results.map(\.byteCount) == [1_000_000, 1_000_000, 1_000_000])
                #expect(results.map(\.isFinished) == [true, true, true])
                #expect(try directory.bytes(of: "copy") == bytes)
                #expect(collected.withLock { $0 } == bytes)
                #expect(await digest.bytes == (try MessageDigest.digest(.sha256, of: bytes)))
            }
        }
    }

    static func xml() async throws {
        let text =
            "<?xml version='1.0'?><rss><item id='1'><title>Sea &amp; sky</title></item><item id='2'/></rss>"
        try await TestOrigin.withOrigin { _ in
            .bytes(Array(text.utf8), contentType: "application/rss+xml")
        } run: { origin async throws in
            let exchange = try await HTTPSession.plain().get(origin.url())
            let root = try exchange.xml().root
            #expect(root.all("item").compactMap { $0["id"] } == ["1", "2"])
            #expect(root.first("item/title")?.text == "Sea & sky")
        }
    }

    static func curl() async throws {
        try await TestOrigin.withOrigin(handler: .echo) { origin async throws in
            let api = try HTTPSession.plain().host(origin.base, headers: [.authorization: "Bearer s3cret"])
            let prepared = try api.prepare(.put, "it's", parameters: ["name": "Anna & Bert"])
            #expect(!prepared.request.curlCommand(body: prepared.body).contains("s3cret"))
            let command = prepared.request.curlCommand(body: prepared.body, mask: .none)
            let output = try await Command.succeed("sh", ["-c", "\(command) --silent --noproxy '*'"])
            let typed = try JSONDecoder().decode(EchoReport.self, from: Data(output.utf8))
            let sent: EchoReport = try await api.put("it's", parameters: ["name": "Anna & Bert"]).decode()
            #expect(typed.method == "PUT")
            #expect(typed.target == sent.target)
            #expect(typed.body == sent.body)
            for name in ["Authorization", "Content-Type"] { #expect(typed.header(name) == sent.header(name)) }
        }
    }
}

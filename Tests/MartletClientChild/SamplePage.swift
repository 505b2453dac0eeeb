package import Martlet
package import MartletTesting

/// Pages that differ each time and identify their own content, so that a reader can detect a wrong byte.
package enum SamplePage {
    /// A page with its version, fresh for ten minutes.
    ///
    /// Half of the pages are shorter than 2,000 bytes and are stored inside their entry; the others have up to
    /// `maximum` bytes.
    package static func answer(_ request: OriginRequest, version: UInt64, maximum: UInt64) -> OriginResponse {
        var generator = SeededGenerator(seed: version)
        let count = generator.next() % (generator.next() % 2 == 0 ? min(2000, maximum) : maximum)
        return answer(request, version: version, count: count)
    }

    /// A page with its version and the given length, fresh for ten minutes.
    package static func answer(_ request: OriginRequest, version: UInt64, count: UInt64) -> OriginResponse {
        OriginResponse(
            200,
            headers: [
                "Cache-Control": "max-age=600", "X-Path": request.path, "X-Version": "\(version)",
                "X-Count": "\(count)",
            ], body: .pattern(count, from: version))
    }

    /// Whether a response is exactly a page that was sent for a path, in any version.
    package static func isRight(_ exchange: HTTPExchange, _ path: String) -> Bool {
        func field(_ name: String) -> String? {
            HTTPField.Name(name).flatMap { exchange.response.headerFields[$0] }
        }
        guard exchange.statusCode == 200, field("X-Path") == path,
            let version = field("X-Version").flatMap({ UInt64($0) }),
            let count = field("X-Count").flatMap({ Int($0) }), exchange.body.count == count
        else { return false }
        return TestPattern.firstMismatch(in: exchange.body, at: version) == nil
    }
}

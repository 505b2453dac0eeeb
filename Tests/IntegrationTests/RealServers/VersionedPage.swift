import Martlet
import MartletTesting
import Synchronization

/// A page that each POST changes: its text is `version 1`, `version 2` and so on. It has both validators, and responds
/// with 304 to requests that have the current version.
final class VersionedPage: Sendable {
    private let version = Mutex(1)

    /// The response to a request, with these fields in addition to the validators.
    func answer(_ request: OriginRequest, _ fields: OriginFields) -> OriginResponse {
        guard request.method == .get else {
            version.withLock { $0 += 1 }
            return OriginResponse(204)
        }
        let number = version.withLock { $0 }
        let tag = "\"\(number)\""
        var fields = fields
        fields["ETag"] = tag
        fields["Last-Modified"] = "Tue, 14 Nov 2023 22:13:2\(number % 10) GMT"
        if request.headers["If-None-Match"]?.contains(tag) == true {
            return OriginResponse(304, headers: fields)
        }
        return OriginResponse(200, headers: fields, body: .text("version \(number)"))
    }
}

extension HTTPExchange {
    /// The value of `Age` in seconds; `nil` without it.
    var age: Int? { response.headerFields[.age].flatMap { Int($0) } }

    /// The first value of a field.
    func field(_ name: String) -> String? {
        HTTPField.Name(name).flatMap { response.headerFields[$0] }
    }
}

extension RequestOptions {
    /// Options with the given cache mode.
    static func using(_ mode: CacheMode) -> RequestOptions {
        var options = RequestOptions()
        options.cacheMode = mode
        return options
    }
}

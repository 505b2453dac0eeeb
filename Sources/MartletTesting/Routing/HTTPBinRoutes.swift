import FoundationEssentials
import HTTPTypes
import MartletContent
import MartletURL

/// The routes of httpbin.org, under the same paths. A number outside of its range is a 400.
enum HTTPBinRoutes {
    static let list: [(path: String, purpose: String)] = [
        ("/get, /post, /put, /patch, /delete", "describes a request of that method as JSON"),
        ("/anything", "describes any request as JSON, also below this path"),
        ("/headers, /ip, /user-agent", "parts of that description"),
        ("/status/CODE", "responds with a status, 200 to 999"),
        ("/delay/SECONDS", "responds after a delay, 10 s at most; fractions are allowed"),
        ("/relative-redirect/N, /absolute-redirect/N", "N redirects to /get, 100 at most"),
        ("/redirect-to", "redirects to ?url=URL; ?status_code=CODE, 302 by default"),
        ("/basic-auth/USER/PASSWORD", "requires these credentials"),
        ("/hidden-basic-auth/USER/PASSWORD", "the same, with a 404 instead of a challenge"),
        ("/bearer", "requires a bearer token; any one is accepted"),
        ("/cookies", "the request's cookies; /cookies/set?NAME=VALUE, /cookies/delete?NAME change them"),
        ("/stream/N", "N lines of JSON, 100 at most"), ("/range/N", "as /bytes/N"),
        ("/drip", "bytes, slowly: ?numbytes=N, ?duration=SECONDS, ?delay=SECONDS, ?code=CODE"),
        ("/etag/TAG", "has this ETag; evaluates If-None-Match and If-Match"), ("/cache", "304 to conditional requests"),
        ("/cache/N", "Cache-Control: public, max-age=N"),
        ("/response-headers", "?NAME=VALUE become fields of the response"),
        ("/sse", "server-sent events: ?count=N, 10 by default; ?delay=SECONDS between them, 1 by default"),
    ]

    static func add(to router: inout OriginRouter) {
        addReports(to: &router)
        addRedirects(to: &router)
        addCredentials(to: &router)
        addValidators(to: &router)
        addStreams(to: &router)
    }

    private static let report = OriginHandler { try .json(try await HTTPBinReport($0)) }

    private static func addReports(to router: inout OriginRouter) {
        for method in [HTTPRequest.Method.get, .post, .put, .patch, .delete] {
            router.on(method, "/\(method.rawValue.lowercased())", report)
        }
        router.any("/anything", report)
        router.any("/anything/{path...}", report)
        router.any("/headers") { try .json(["headers": HTTPBinReport.headers(of: $0)]) }
        router.any("/ip") { try .json(["origin": HTTPBinReport.address(of: $0)]) }
        router.any("/user-agent") { try .json(["user-agent": $0.headers["User-Agent"]]) }
        router.any("/response-headers") { request in
            var fields = OriginFields(request.query.items)
            fields["Content-Type"] = fields["Content-Type"] ?? "application/json"
            let report = HTTPBinReport.grouped(request.query.items)
            return try .json(report).with { $0.headers = fields }
        }
        router.on(nil, "/status/{number}", in: 200...999) { _, code in .status(code) }
        router.any("/delay/{seconds}") { request in
            guard let delay = seconds(request.parameters["seconds"]) else { return outOfRange(request) }
            return try await report.respond(to: request).with { $0.delay = delay }
        }
    }

    private static func addRedirects(to router: inout OriginRouter) {
        for kind in ["relative", "absolute"] {
            router.on(nil, "/\(kind)-redirect/{number}", in: 1...100) { request, count in
                let path = count == 1 ? "/get" : "/\(kind)-redirect/\(count - 1)"
                return .redirect(to: kind == "absolute" ? request.base + path : path)
            }
        }
        router.any("/redirect-to") { request in
            let status = request.queryNumber("status_code") ?? 302
            guard let url = request.query["url"], (300...399).contains(status),
                !url.utf8.contains(where: { $0 <= 0x20 || $0 == 0x7F })
            else { return outOfRange(request) }
            return .redirect(to: url, status: status)
        }
    }

    private static func addCredentials(to router: inout OriginRouter) {
        for (path, status) in [("basic-auth", 401), ("hidden-basic-auth", 404)] {
            router.any("/\(path)/{user}/{password}") { request in
                let user = request.parameters["user"] ?? ""
                let expected = Data("\(user):\(request.parameters["password"] ?? "")".utf8).base64EncodedString()
                guard credentials(request, "basic") == expected else {
                    return OriginResponse(status).with {
                        if status == 401 { $0.headers["WWW-Authenticate"] = "Basic realm=\"Martlet\"" }
                    }
                }
                return try .json(["authenticated": true, "user": .string(user)] as JSONValue)
            }
        }
        router.any("/bearer") { request in
            guard let token = credentials(request, "bearer"), !token.isEmpty else {
                return OriginResponse(401, headers: ["WWW-Authenticate": "Bearer"])
            }
            return try .json(["authenticated": true, "token": .string(token)] as JSONValue)
        }
        router.any("/cookies") { try .json(["cookies": HTTPBinReport.cookies(of: $0)]) }
        router.any("/cookies/set") { cookies($0.query.items) }
        router.any("/cookies/set/{name}/{value}") { request in
            cookies([(request.parameters["name"] ?? "", request.parameters["value"] ?? "")])
        }
        router.any("/cookies/delete") { cookies($0.query.items.map { ($0.name, nil) }) }
    }

    private static func credentials(_ request: OriginRequest, _ scheme: String) -> String? {
        let parts = (request.headers["Authorization"] ?? "").split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == scheme else { return nil }
        return String(parts[1])
    }

    /// A redirect to `/cookies` that sets cookies, or removes those without a value.
    private static func cookies(_ items: [(name: String, value: String?)]) -> OriginResponse {
        var response = OriginResponse.redirect(to: "/cookies")
        for (name, value) in items.prefix(100) {
            response.headers.append(
                "Set-Cookie", value.map { "\(name)=\($0); Path=/" } ?? "\(name)=; Path=/; Max-Age=0")
        }
        return response
    }

    private static func addValidators(to router: inout OriginRouter) {
        router.any("/etag/{etag}") { request in
            let tag = "\"\(request.parameters["etag"] ?? "")\""
            func matches(_ field: String) -> Bool? {
                let tags = request.headers.values(of: field).flatMap { $0.split(separator: ",") }
                if tags.isEmpty { return nil }
                return tags.contains { [tag, "W/\(tag)", "*"].contains($0.filter { $0 != " " }) }
            }
            if matches("If-None-Match") == true { return OriginResponse(304, headers: ["ETag": tag]) }
            if matches("If-Match") == false { return OriginResponse(412) }
            return try await report.respond(to: request).with { $0.headers["ETag"] = tag }
        }
        router.any("/cache") { request in
            let fields: OriginFields = ["ETag": "\"martlet\"", "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"]
            if request.headers.contains("If-None-Match") || request.headers.contains("If-Modified-Since") {
                return OriginResponse(304, headers: fields)
            }
            return try await report.respond(to: request).with { response in
                for (name, value) in fields { response.headers[name] = value }
            }
        }
        router.on(nil, "/cache/{number}", in: 0...31_536_000) { _, age in
            OriginHandler { request in
                try await report.respond(to: request).with { $0.headers["Cache-Control"] = "public, max-age=\(age)" }
            }
        }
    }

    private static func addStreams(to router: inout OriginRouter) {
        router.on(.get, "/range/{number}") { _, count in .bytes(UInt64(count)) }
        router.on(.get, "/stream/{number}", in: 0...100) { request, count in
            .fixed(
                OriginResponse(
                    contentType: "application/json",
                    body: .stream { writer in for id in 0..<count { try await writer.write("{\"id\":\(id)}\n") } }))
        }
        router.get("/drip") { request in
            let (count, code) = (request.queryNumber("numbytes") ?? 10, request.queryNumber("code") ?? 200)
            guard (0...10 << 20).contains(count), (200...999).contains(code),
                let duration = seconds(request.query["duration"] ?? "2"),
                let delay = seconds(request.query["delay"] ?? "0")
            else { return outOfRange(request) }
            return .pattern(UInt64(count)).with {
                ($0.status, $0.delay) = (code, delay)
                let pieces = min(max(1, count), 100)
                $0.pacing = OriginPacing(pieceSize: (count + pieces - 1) / pieces, every: duration / max(1, pieces))
            }
        }
        router.get("/sse") { request in
            let count = request.queryNumber("count") ?? 10
            guard (0...100).contains(count), let pause = seconds(request.query["delay"] ?? "1") else {
                return outOfRange(request)
            }
            // A client that reconnects continues after the last event that it has.
            let last = min(max(-1, request.headers["Last-Event-ID"].flatMap { Int($0) } ?? -1), count)
            return OriginResponse(
                headers: ["Cache-Control": "no-store"], contentType: "text/event-stream",
                body: .stream { writer in
                    for id in (last + 1)..<max(count, last + 1) {
                        if id > last + 1 { try await writer.pause(for: pause) }
                        try await writer.write("id: \(id)\nevent: ping\ndata: {\"id\":\(id)}\n\n")
                    }
                })
        }
    }

    /// A number of seconds, 0 to 10.
    private static func seconds(_ text: String?) -> Duration? {
        guard let number = text.flatMap({ Double($0) }), (0...10).contains(number) else { return nil }
        return .seconds(number)
    }

    private static func outOfRange(_ request: OriginRequest) -> OriginResponse {
        .text("\(request.path): a parameter is missing or out of range\n", status: 400)
    }
}

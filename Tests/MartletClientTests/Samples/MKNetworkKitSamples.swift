import Martlet

/// The samples of the page for people who come from MKNetworkKit, compiled; a test compares the two texts.
enum MKNetworkKitSamples {
    static func loaded(_ api: HTTPHost) async throws {
        let deliveries = api.deliveries(for: "reports", cache: .cacheThenRevalidate)
        for try await delivery in deliveries {
            print(delivery.exchange.text, delivery.isPreview ? "stored" : "new")
        }
    }

    static func hosts() async throws -> HTTPExchange {
        let session = HTTPSession(configuration: .ephemeral)
        var api = try session.host(
            named: "api.example.com", port: 8443, path: "v2",
            headers: [.accept: "application/json"], encoding: .json)
        api.headers[.acceptLanguage] = "de"

        let exchange = try await api.get("users", query: ["page": 2])
        let posted = try await api.request(
            method: .post, "users", parameters: ["name": "Anna"])
        let put = try await api.put("users/1/note", body: .text("a note"))
        let elsewhere = try await api.get("https://status.example.com/today")

        print(posted, put, elsewhere)
        return exchange
    }

    struct Signed: HTTPMiddleware {
        let token: String

        func handle(
            _ request: HTTPCall.Request, context: CallContext, next: HTTPNext
        ) async throws -> HTTPCall.Response {
            guard request.head.authority == "api.example.com:8443" else {
                return try await next(request)
            }
            var signed = request
            signed.headers[.authorization] = "Token \(token)"
            return try await next(signed)
        }
    }

    struct ServiceError: Error, Decodable {
        var message: String
    }

    static func overridden(_ host: HTTPHost, token: String) async throws {
        var api = host
        api.session = api.session.with { $0.middleware.append(Signed(token: token)) }

        api.errors = ErrorMapper.decoding(ServiceError.self)
        do {
            let exchange = try await api.get("users/0")
            print(exchange.text)
        } catch let error as ServiceError {
            print(error.message)
        }
    }

    static func read(_ exchange: HTTPExchange) throws -> User {
        let bytes = exchange.bytes
        let text = exchange.text
        let json = try exchange.json
        let user: User = try exchange.decode()
        print(bytes.count, text, json["name"]?.stringValue ?? "")
        return user
    }

    static func transfers(_ api: HTTPHost, note: String) async throws {
        let form = HTTPBody.multipart { form in
            form.field("title", "Harbour")
            form.file("photo", at: "/data/harbour.jpg", contentType: "image/jpeg")
            form.data("note", note.utf8, filename: "note.txt", contentType: "text/plain")
        }
        let posted = try await api.upload(form, to: "photos") { progress in
            print(progress.fractionCompleted ?? 0)
        }

        try await api.download(
            "archive.zip", to: "/data/archive.zip", overwrites: true
        ) { progress in
            print(progress.completedByteCount)
        }

        let digest = DigestSink(.sha256)
        let results = try await api.stream("archive.zip") { response, body in
            try await body.tee(to: [FileSink("/data/copy.zip"), digest])
        }
        print(posted.statusCode, results, await digest.hexadecimal ?? "")
    }

    static func running(_ session: HTTPSession, _ api: HTTPHost) async throws {
        let task = try await api.task("reports/1")
        for await state in task.states {
            switch state {
            case .waiting, .sending, .receiving, .paused: print("started")
            case .finished(.completed): print("completed")
            case .finished(.cancelled): print("cancelled")
            case .finished(.failed): print("error")
            }
        }
        await task.cancel()

        for call in await session.tasks { call.cancel() }
    }

    static func identified(_ host: HTTPHost) throws -> [HTTPHost] {
        var api = host
        api.credentials = .any(user: "me", password: "secret")

        api.authentication = AuthenticationSettings { challenge in
            challenge.offers("Digest") ? .digest(user: "me", password: "secret") : nil
        }

        api.tls = TLSHostSettings(
            identity: try .pkcs12(file: "/etc/corp/client.p12", passphrase: "secret"))

        let careless = api.with {
            $0.tls = TLSHostSettings(trust: .dangerouslyAcceptingAnyCertificate)
        }
        return [api, careless]
    }

    static func printed(_ api: HTTPHost) throws {
        let prepared = try api.prepare(.post, "users", parameters: ["name": "Anna"])
        print(prepared.request.curlCommand(body: prepared.body))
    }

    struct Forecast: Decodable {
        var high: Double
    }

    struct ForecastForCity: HTTPEndpoint {
        typealias Response = Forecast
        var city: String
        var path: String { "forecast" }
        var parameters: [String: String] { ["city": city] }
    }

    static func asked(_ session: HTTPSession) async throws -> Double {
        let weather = try session.host("https://weather.example.com/v1")
        let forecast = try await weather.call(ForecastForCity(city: "Lübeck"))
        return forecast.high
    }

    static func queued() async {
        var configuration = SessionConfiguration.default
        configuration.concurrency = .sharedQueue
        configuration.priority = .low
        let session = HTTPSession(configuration: configuration)
        session.networkConditionChanged(to: .mobile)
        let thumbnails = session.with { $0.priority = .high }

        for await count in session.activity {
            print(count > 0 ? "busy" : "idle", thumbnails.runningCallCount)
        }
    }
}

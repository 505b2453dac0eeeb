import Foundation
import Martlet

/// The samples of the page for people who come from AFNetworking, compiled; a test compares the two texts.
enum AFNetworkingSamples {
    static func hosts(_ user: User) async throws -> [User] {
        let session = HTTPSession(configuration: .default)
        let api = try session.host("https://api.example.com/v2")
        let users: [User] = try await api.get("users", query: ["page": 2]).decode()

        let head = try await api.head("users/1")
        let posted = try await api.post("users", parameters: user)
        let replaced = try await api.put("users/1", parameters: user)
        let changed = try await api.patch("users/1", parameters: ["name": "Anna"])
        let deleted = try await api.delete("users/1")
        let allowed = try await api.request(method: .options, "users")

        print(head, posted, replaced, changed, deleted, allowed)
        return users
    }

    static func serializers(_ session: HTTPSession) async throws -> HTTPExchange {
        var api = try session.host("https://api.example.com/v2", encoding: .json)
        api.encoding = .propertyList(.binary)
        api.encoding = .form

        api.headers[.accept] = "application/json"
        api.credentials = .basic(user: "me", password: "secret")
        api.options.timeouts.idle = .seconds(30)
        api.options.usesCookies = false

        api.encoding = .json.with { $0.methodsWithParametersInURL = [.get, .head] }

        api.encoding = .form.with {
            $0.query.serializer = { parameters in
                guard case .object(let values) = parameters else { return "" }
                return values.keys.sorted().joined(separator: ",")
            }
        }

        api.encoding = .form.with { $0.query = .bracketed }

        let posted = try await api.post(
            "people",
            parameters: [
                "name": "Anna", "age": 31, "phone": ["mobile": "123", "home": "456"],
                "families": ["father", "mother"],
            ])

        let prepared = try api.prepare(.post, "people", parameters: ["name": "Anna"])
        print(prepared.request.headerFields, prepared.body.contentType ?? "")
        return posted
    }

    static func decoders(_ api: HTTPHost) async throws -> [User] {
        let exchange = try await api.get("users/1")
        let user = try exchange.decode(using: .json(User.self, removingNulls: true))
        let tree = try exchange.decode(using: .json(removingNulls: true))

        let taken = try await api.get("users/1").validated(
            .status(200..<300, 404..<405), .contentType("application/json", "text/*"))

        let settings = try exchange.decode(using: .propertyList(User.self))

        let either = try exchange.decode(
            using: .first(of: .json(User.self), .propertyList(User.self)))
        print(tree, taken)
        return [user, settings, either]
    }

    static func demanding() -> HTTPSession {
        var configuration = SessionConfiguration.default
        configuration.validator = .success.and(.contentType("application/json"))
        let strict = HTTPSession(configuration: configuration)
        return strict
    }

    static func multipart(
        _ api: HTTPHost, _ photo: String, _ data: [UInt8], _ pieces: AsyncStream<[UInt8]>
    ) async throws {
        let form = HTTPBody.multipart { form in
            form.field("title", "Harbour")
            form.file("photo", at: photo, filename: "h.jpg", contentType: "image/jpeg")
            form.data("thumbnail", data, filename: "small.png", contentType: "image/png")
            form.part("track", .once(pieces, length: 48_000), filename: "track.gpx")
        }
        var options = RequestOptions()
        options.bandwidth = BandwidthLimit(upload: .bytesPerSecond(80 << 10))
        let sent = try await api.upload(form, to: "photos", options: options) { progress in
            print(progress.fractionCompleted ?? 0)
        }
        print(sent.statusCode)
    }

    static func tasks(
        _ session: HTTPSession, _ request: HTTPRequest, _ bytes: [UInt8], _ pieces: AsyncStream<[UInt8]>
    ) async throws {
        let data = await session.task(for: request)
        let fromFile = await session.task(for: request, body: .file("/data/movie.mp4"))
        let fromData = await session.task(for: request, body: .bytes(bytes))
        let streamed = await session.task(for: request, body: .once(pieces))
        let download = await session.downloadTask(for: request, to: "/models/model.gguf")
        let exchange = try await data.value

        for await progress in fromFile.uploadProgress {
            print(progress.completedByteCount, progress.totalByteCount ?? 0)
        }

        await fromFile.uploadProgress.pause()
        await fromFile.uploadProgress.resume()
        await fromFile.uploadProgress.cancel()

        let all = await session.tasks
        let uploads = await session.tasks(of: .upload)
        for call in await session.tasks(of: .download) { call.cancel() }

        await session.invalidateAndCancel()
        await session.finishAndInvalidate()
        print(fromData, streamed, download, exchange, all, uploads)
    }

    struct Downloads: SessionDelegate {
        func destination(
            of response: HTTPResponse, proposed: FilePath, in context: CallContext
        ) async throws -> FilePath? {
            let field = response.headerFields[.contentDisposition] ?? ""
            guard let name = ContentDisposition(field)?.suggestedFilename else {
                return nil
            }
            return proposed.removingLastComponent().appending(name)
        }
    }

    static func watched(_ session: HTTPSession) async {
        for await event in session.events {
            switch event.kind {
            case .started, .resumed: print("resumed", event.call ?? 0)
            case .suspended: print("suspended", event.call ?? 0)
            case .finished(let metrics): print("completed", metrics.total)
            case .failed, .cancelled: print("completed with an error")
            default: break
            }
        }

        for await count in session.activity {
            print(count > 0 ? "busy" : "idle")
        }
    }

    static func trust(_ pin: String, _ nextPin: String) throws -> SessionConfiguration {
        var configuration = SessionConfiguration.default
        configuration.tls.trust = try .pinnedPublicKeys(pin, backup: nextPin)
        configuration.tls.trust = .pinnedCertificates(.file("/etc/corp/api.pem"))
        configuration.tls.hosts["test.example.com"] = TLSHostSettings(
            trust: .dangerouslyAcceptingAnyCertificate)
        return configuration
    }

    static func together(_ api: HTTPHost) async throws -> [HTTPExchange] {
        async let user = api.get("users/1")
        async let posts = api.get("posts")
        let both = try await [user, posts]
        return both
    }

    static func failing(_ api: HTTPHost) async throws {
        do {
            let user: User = try await api.get("users/0").decode()
            print(user)
        } catch let error as HTTPError {
            print(error.exchange?.statusCode ?? 0)
            print(error.exchange?.text ?? "")
        }
    }

    static func stored(_ configuration: SessionConfiguration) throws -> SessionConfiguration {
        let stored = try JSONEncoder().encode(configuration)
        let again = try JSONDecoder().decode(SessionConfiguration.self, from: stored)
        return again
    }
}

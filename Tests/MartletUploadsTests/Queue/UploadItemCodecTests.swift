import MartletCore
import Testing

@testable import MartletUploads

@Suite("The records of uploads")
struct UploadItemCodecTests {
    private func item() throws -> UploadItem {
        var options = UploadOptions(
            method: .put, headers: ["X-A": "1", "Authorization": "Bearer secret", "X-Key": "secret"], protocol: .tus,
            chunkSize: 77, retry: UploadRetry(maximumRetries: 9, initialDelay: .milliseconds(3)), priority: .high,
            allowsRepetition: true, bandwidth: .bytesPerSecond(5),
            secretFields: [try #require(HTTPField.Name("X-Key"))])
        options.retry.maximumDelay = .seconds(8)
        var item = UploadItem(
            url: try HTTPURL("https://user:secret@example.org/a?b=c"), path: "/data/a b",
            file: UploadFileIdentity(byteCount: 100, modificationTime: -5, number: 6), options: options)
        (item.id, item.order) = (UploadID(3), 4)
        item.checkpoint = UploadMachine.Checkpoint(
            protocol: .tus, url: try HTTPURL("https://example.org/up"), offset: 50, mayBeComplete: true)
        return item
    }

    @Test("A record has everything but the secrets")
    func roundTrip() throws {
        var item = try item()
        let stages: [UploadItem.Stage] = [
            .waiting, .paused, .cancelled,
            .finished(
                UploadResult(
                    statusCode: 201, headers: [.location: "y", .setCookie: "a=secret"], body: [1, 2], byteCount: 100)),
            .failed(HTTPError(.uploadUncertain, phase: .sending, message: "m", wasSent: true, status: 500)),
        ]
        for stage in stages {
            item.stage = stage
            let bytes = try UploadItemCodec.encode(item)
            #expect(!String(decoding: bytes, as: UTF8.self).contains("secret"))
            let decoded = try UploadItemCodec.decode(bytes)
            var expected = item.options
            expected.headers["Authorization"] = nil
            expected.headers["X-Key"] = nil
            #expect(decoded.options == expected)
            #expect(decoded.checkpoint == item.checkpoint)
            #expect(decoded.file == item.file && decoded.path == item.path)
            #expect(decoded.id == item.id && decoded.order == item.order)
            #expect(decoded.url.absoluteString == "https://example.org/a?b=c")
            // Encoding again compares the states.
            #expect(try UploadItemCodec.encode(decoded) == bytes)
        }
    }

    @Test("A damaged record is an error at every byte and at every length")
    func damage() throws {
        var item = try item()
        item.stage = .finished(UploadResult(statusCode: 200, body: [1], byteCount: 100))
        let bytes = try UploadItemCodec.encode(item)
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 0xFF
            #expect(throws: RecordEnvelope.FormatError.self) { try UploadItemCodec.decode(damaged) }
            #expect(throws: RecordEnvelope.FormatError.self) { try UploadItemCodec.decode(Array(bytes[..<index])) }
        }
    }

    @Test("A record of version 1 is read without the device of its file, which a reboot may change")
    func device() throws {
        let item = try item()
        let bytes = try UploadItemCodec.encode(item)
        var content = Array(bytes.dropFirst(16))
        // The device follows two numbers, two texts with their lengths, and three numbers of the file.
        let texts = [item.url.withoutUserInfo.absoluteString, item.path]
        content.insert(contentsOf: [7, 0, 0, 0, 0, 0, 0, 0], at: 40 + texts.reduce(0) { $0 + 4 + $1.utf8.count })
        let former = RecordEnvelope(magic: "MRTu", version: 1, byteLimit: UploadItemCodec.byteLimit)
        let decoded = try UploadItemCodec.decode(former.encode { $0.write(raw: content) })
        #expect(decoded.file == item.file && decoded.checkpoint == item.checkpoint)
        #expect(try UploadItemCodec.encode(decoded) == bytes)
    }

    @Test("An offset after the end of the file is invalid")
    func offset() throws {
        var item = try item()
        item.checkpoint.offset = 101
        let bytes = try UploadItemCodec.encode(item)
        #expect(throws: RecordEnvelope.FormatError.self) { try UploadItemCodec.decode(bytes) }
    }
}

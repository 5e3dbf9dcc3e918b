use serde_json::{Value, json};

use super::client::{Client, MAPS, WIDGETS, World, map, widget};

async fn fill(client: &Client, count: usize) {
    for number in 0..count {
        let mut body = map(&format!("m{number:02}"), json!({}));
        body["metadata"]["labels"] = json!({"parity": if number % 2 == 0 { "even" } else { "odd" }});
        client.post(MAPS, body).await.expect(201);
    }
}

fn names(list: &Value) -> Vec<String> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn pages_show_one_consistent_state() {
    let world = World::start().await;
    fill(&world.admin, 10).await;
    let query = "labelSelector=parity&limit=4";
    let first = world.admin.get(&format!("{MAPS}?{query}")).await.expect(200);
    let revision = first["metadata"]["resourceVersion"].clone();
    world.admin.delete(&format!("{MAPS}/m05")).await.expect(200);
    world.admin.post(MAPS, map("m055", json!({}))).await.expect(201);
    let mut seen = names(&first);
    let mut token = first["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    while !token.is_empty() {
        let page = world.admin.get(&format!("{MAPS}?{query}&continue={token}")).await.expect(200);
        assert_eq!(page["metadata"]["resourceVersion"], revision);
        seen.extend(names(&page));
        token = page["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
    }
    assert_eq!(seen, (0..10).map(|number| format!("m{number:02}")).collect::<Vec<_>>());
    let whole = world.admin.get(&format!("{MAPS}?limit=2&resourceVersion=0")).await.expect(200);
    assert!(whole["metadata"].get("continue").is_none());
}

#[tokio::test]
async fn selectors_filter() {
    let world = World::start().await;
    fill(&world.admin, 6).await;
    for (query, expected) in [
        ("labelSelector=parity%3Deven", vec!["m00", "m02", "m04"]),
        ("labelSelector=parity+in+(odd),parity", vec!["m01", "m03", "m05"]),
        ("fieldSelector=metadata.name%3Dm03", vec!["m03"]),
        (
            "labelSelector=parity&fieldSelector=metadata.name!%3Dm03,metadata.namespace%3Ddefault",
            vec!["m00", "m01", "m02", "m04", "m05"],
        ),
    ] {
        assert_eq!(names(&world.admin.get(&format!("{MAPS}?{query}")).await.expect(200)), expected, "{query}");
    }
    world
        .admin
        .get(&format!("{MAPS}?fieldSelector=data.x%3D1"))
        .await
        .refused(400, "\"data.x\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\"");
    world.admin.get(&format!("{MAPS}?labelSelector=a+b")).await.expect(400);
    world.admin.get(&format!("{MAPS}?continue=nonsense")).await.expect(400);
    world.admin.get(&format!("{MAPS}?resourceVersion=abc")).await.expect(400);
    world.admin.get(&format!("{MAPS}?resourceVersionMatch=Exact")).await.expect(422);
}

#[tokio::test]
async fn a_revision_from_the_future_times_out() {
    let world = World::start().await;
    let answer = world.admin.get(&format!("{MAPS}?resourceVersion=99999999")).await;
    assert_eq!((answer.code, answer.body["reason"].as_str()), (504, Some("Timeout")));
    assert!(answer.headers.contains_key("retry-after"));
}

#[tokio::test]
async fn an_exact_revision_shows_the_past() {
    let world = World::start().await;
    fill(&world.admin, 3).await;
    let now = world.admin.get(&format!("{MAPS}?labelSelector=parity")).await.expect(200);
    let revision = now["metadata"]["resourceVersion"].as_str().unwrap();
    world.admin.delete(&format!("{MAPS}/m01")).await.expect(200);
    let past = world
        .admin
        .get(&format!("{MAPS}?labelSelector=parity&resourceVersion={revision}&resourceVersionMatch=Exact"))
        .await
        .expect(200);
    assert_eq!(names(&past), ["m00", "m01", "m02"]);
}

#[tokio::test]
async fn lists_come_as_tables_and_partial_objects() {
    let world = World::with_widgets().await;
    world.admin.post(WIDGETS, widget("w1", json!({"size": 3}))).await.expect(201);
    let table = [("accept", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json")];
    let answer = world.admin.call("GET", WIDGETS, &table, Vec::new()).await.expect(200);
    assert_eq!(answer["kind"], "Table");
    assert_eq!(answer["rows"][0]["cells"], json!(["w1", 3]));
    assert_eq!(answer["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    let partial = [("accept", "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")];
    let answer = world.admin.call("GET", WIDGETS, &partial, Vec::new()).await.expect(200);
    assert_eq!(answer["kind"], "PartialObjectMetadataList");
    assert!(answer["items"][0].get("spec").is_none());
    let yaml = world.admin.call("GET", &format!("{WIDGETS}/w1"), &[("accept", "application/yaml")], Vec::new()).await;
    assert!(yaml.text.contains("kind: Widget"), "{}", yaml.text);
}

#[tokio::test]
async fn discovery_comes_in_one_document_for_those_who_ask() {
    let world = World::with_widgets().await;
    let media = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
    let accept = [("accept", format!("{media},application/json"))];
    let headers: Vec<(&str, &str)> = accept.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let core = world.admin.call("GET", "/api", &headers, Vec::new()).await;
    assert_eq!(core.headers["content-type"], media);
    let resources = core.body["items"][0]["versions"][0]["resources"].as_array().unwrap();
    assert!(resources.iter().any(|found| found["resource"] == "secrets" && found["scope"] == "Namespaced"));
    let groups = world.admin.call("GET", "/apis", &headers, Vec::new()).await.expect(200);
    assert_eq!(
        (&groups["kind"], &groups["apiVersion"]),
        (&json!("APIGroupDiscoveryList"), &json!("apidiscovery.k8s.io/v2"))
    );
    let widgets =
        groups["items"].as_array().unwrap().iter().find(|group| group["metadata"]["name"] == "example.io").unwrap();
    let widget = &widgets["versions"][0]["resources"][0];
    assert_eq!((&widget["responseKind"]["kind"], &widget["shortNames"]), (&json!("Widget"), &json!(["wd"])));
    let names: Vec<&str> =
        widget["subresources"].as_array().unwrap().iter().map(|sub| sub["subresource"].as_str().unwrap()).collect();
    assert_eq!(names, ["status", "scale"]);
    // Others get the classic form, and kcp has no other.
    assert_eq!(world.admin.get("/apis").await.expect(200)["kind"], "APIGroupList");
    let kcp = World::kcp(&[]).await;
    assert_eq!(
        kcp.admin.call("GET", "/clusters/root/apis", &headers, Vec::new()).await.expect(200)["kind"],
        "APIGroupList"
    );
}

#[tokio::test]
async fn older_clients_get_openapi_in_one_document() {
    let world = World::with_widgets().await;
    let document = world.admin.get("/openapi/v2").await.expect(200);
    assert_eq!(document["swagger"], "2.0");
    let definitions = &document["definitions"];
    let widget = &definitions["io.example.v1.Widget"];
    assert_eq!(widget["x-kubernetes-group-version-kind"][0]["kind"], "Widget");
    assert_eq!(
        widget["properties"]["metadata"]["$ref"],
        "#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
    );
    let spec = &definitions["io.k8s.api.apps.v1.Deployment"]["properties"]["spec"]["$ref"];
    assert_eq!(spec, "#/definitions/io.k8s.api.apps.v1.DeploymentSpec");
    let pod = &definitions["io.k8s.api.core.v1.PodSpec"]["properties"];
    assert_eq!(pod["containers"]["items"]["$ref"], "#/definitions/io.k8s.api.core.v1.Container");
    // Every reference leads somewhere.
    let text = document.to_string();
    for target in text.split("#/definitions/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
        assert!(definitions[target].is_object(), "{target}");
    }
    let media = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
    let encoded = world.admin.call("GET", "/openapi/v2", &[("accept", media)], Vec::new()).await;
    let answered = (encoded.code, encoded.headers["content-type"].to_str().unwrap().to_owned());
    assert_eq!(answered, (200, media.replace('@', ".")));
    let kcp = World::kcp(&[]).await;
    let document = kcp.admin.get("/clusters/root/openapi/v2").await.expect(200);
    assert!(document["definitions"]["io.k8s.api.core.v1.Secret"].is_object());
}
